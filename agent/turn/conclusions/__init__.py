"""What follows from sentences that answer a part of a question each: which is less, and what they make together."""
