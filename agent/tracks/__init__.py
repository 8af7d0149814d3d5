"""Formats and rules of the tracks, a module an edition."""
