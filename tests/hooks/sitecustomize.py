"""Python imports this first in every process that a test starts with this folder on PYTHONPATH.

Each hook is switched on by a variable of its own: NO_NETWORK, FAULT_AT, JITTER.
"""

import os

if os.environ.get("NO_NETWORK"):
    import no_network

    no_network.install()
if os.environ.get("FAULT_AT"):
    import signal_at_change

    signal_at_change.install()
if os.environ.get("JITTER", "0") != "0":
    import jitter

    jitter.install()
