"""Conversations with a person at the keyboard or in a browser: the same flow, fed by them, and kept for them."""
