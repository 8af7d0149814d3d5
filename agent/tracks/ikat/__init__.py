"""TREC iKAT, one module an edition."""
