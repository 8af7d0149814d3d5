"""RCD-2020: spans that need background, and passages about them."""
