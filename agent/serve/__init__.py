"""The agent behind a port of this machine: a page to ask in, and `/v1` for clients that speak OpenAI's protocol."""
