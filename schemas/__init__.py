"""Shapes only: the frozen records that pass between the steps, and the JSON Schemas of what goes in and out."""
