"""A person's own files as passages, a module a document type."""
