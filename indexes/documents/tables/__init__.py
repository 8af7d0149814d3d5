"""The tables of documents, with typed columns."""
