"""Files, caches and directories on disk."""
