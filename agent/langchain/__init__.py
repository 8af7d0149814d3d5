"""The passages and the model as LangChain's retriever and chat model."""
