"""RCD-2020: the span of a film's dialogue that asks for background, and passages about it."""
