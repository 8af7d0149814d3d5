"""Text analysis: words, sentences, markup."""
