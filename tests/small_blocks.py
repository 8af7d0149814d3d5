"""The command line with blocks of eight vectors, for processes that are killed between them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import cli
from indexes.ranking import vectors

vectors.BLOCK_ROWS = 8
cli.app()
