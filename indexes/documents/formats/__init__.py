"""Plain files as passages, with one module for each document type and what the types share."""
