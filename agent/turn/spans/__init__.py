"""What a question and a sentence say, word by word, and the spans of a sentence that could be the answer."""
