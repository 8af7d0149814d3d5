"""Corpora in, a Tantivy index out, and ranked passages from it. Knows no model and no prompt."""
