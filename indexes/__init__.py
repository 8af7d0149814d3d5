"""Building indexes from corpora and documents, and searching them. This package knows no model and no prompt."""
