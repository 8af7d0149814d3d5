"""A whole topics file: from its evidence to its run, trace and metadata."""
