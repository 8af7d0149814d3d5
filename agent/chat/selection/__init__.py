"""Which documents a question means: by their dates, kinds and languages."""
