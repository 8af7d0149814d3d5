"""In place of a shard's process: it ends as soon as it is asked anything."""

import os
import sys

sys.stdin.buffer.read(1)
os._exit(3)
