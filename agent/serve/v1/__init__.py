"""`/v1`: the agent for programs that speak OpenAI's protocol. Nothing of a request is kept."""
