"""Indexes in several parts, which may be built and searched by different machines."""
