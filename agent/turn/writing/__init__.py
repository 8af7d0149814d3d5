"""The answer in words: by a large model, by the small one that was taught to, or quoted."""
