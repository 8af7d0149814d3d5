"""Language and embedding models behind one protocol."""
