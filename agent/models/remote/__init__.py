"""Models behind an address: servers that speak the protocol of OpenAI."""
