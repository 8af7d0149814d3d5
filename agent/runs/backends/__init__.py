"""Where the workers of a run are: in this process, or on a Ray cluster. `local.py` says what a backend does."""
