"""What happens to a turn. Start reading in `agent/flow.py`."""
