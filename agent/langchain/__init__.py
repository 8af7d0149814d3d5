"""The agent's parts as LangChain's: retriever and chat model."""
