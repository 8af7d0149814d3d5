"""The user's directories: for caches, which may be deleted, and for data, which may not."""

import os
from pathlib import Path


def find_cache_directory() -> Path:
    """Where caches are: `CONVAGENT_CACHE`, or else the user's cache directory."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("CONVAGENT_CACHE") or user_cache_path("convagent"))


def find_data_directory() -> Path:
    """Where the user's own data are: `CONVAGENT_DATA`, or else the user's data directory."""
    from platformdirs import user_data_path

    return Path(os.environ.get("CONVAGENT_DATA") or user_data_path("convagent"))
