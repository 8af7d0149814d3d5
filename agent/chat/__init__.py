"""Conversations with a person, at the terminal or in a browser: answered by the same flow, and kept."""
