"""Files of passages, read as a stream."""
