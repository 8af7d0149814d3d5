"""A person's own files as passages, with one module for each document type."""
