"""Models in this process, by llama.cpp."""
