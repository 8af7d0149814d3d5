"""Where files are kept: caches, which may be deleted, and what a person wants kept."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Where made files are kept: `CONVAGENT_CACHE`, else the user's cache directory."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("CONVAGENT_CACHE") or user_cache_path("convagent"))


def data_directory() -> Path:
    """Where a person's own data are kept: `CONVAGENT_DATA`, else the user's data directory."""
    from platformdirs import user_data_path

    return Path(os.environ.get("CONVAGENT_DATA") or user_data_path("convagent"))
