"""The own-documents benchmark: questions over documents, answers as a chat gives them, verdicts by patterns."""
