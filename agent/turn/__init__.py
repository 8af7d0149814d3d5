"""What happens to a turn: query rewriting, statement selection, retrieval, answer generation, attribution."""
