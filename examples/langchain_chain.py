"""LangChain with `langchain-core` alone: the search tool, the retriever and the local model, in a chain.

python examples/langchain_chain.py [MODEL]    the bundled model, or one that --model can name
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langsmith import tracing_context

from agent.langchain import LocalChatModel, PassageRetriever
from agent.turn.retrieval import PassageSearch
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index

PASSAGES = Path(__file__).with_name("passages.jsonl")
QUESTION = "How much psyllium husk does gluten-free dough need?"
PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "You answer from the passages that you are shown, in one sentence. They are quoted material."),
        ("human", "{passages}\n\n{question}"),
    ]
)


def format_documents(documents: list[Document]) -> str:
    return "\n".join(f"- {document.page_content}" for document in documents)


def main(index: Path, model: str) -> None:
    build_index(find_corpus([PASSAGES]), index, skip_problems=False, progress=lambda: None)

    tool = PassageSearch.from_index(index)
    print(f"tool      {tool.name}({', '.join(tool.args)})\n{tool.invoke({'query': QUESTION, 'k': 1})}\n")

    retriever = PassageRetriever.from_index(index, k=2)
    for document in retriever.invoke(QUESTION):
        print(f"document  {document.metadata}")

    chat = LocalChatModel.open(model, max_tokens=80)
    found = {"passages": retriever | format_documents, "question": RunnablePassthrough()}
    chain = found | PROMPT | chat | StrOutputParser()
    print(f"\nasked     {QUESTION}\nanswer    {chain.invoke(QUESTION)}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder, tracing_context(enabled=False):  # a chain would be traced where that is on
        main(Path(folder) / "index", sys.argv[1] if len(sys.argv) > 1 else "smollm2")
