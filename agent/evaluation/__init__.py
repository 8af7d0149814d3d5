"""Measures of runs."""
