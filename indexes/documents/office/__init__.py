"""Office files, books and mail as passages, with one module for each document type and one for what types share."""
