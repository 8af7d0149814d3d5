"""Scoring and ranking passages."""
