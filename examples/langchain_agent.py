"""An agent of LangChain over the local model and the passage search (extra `langchain`): the model decides what to do.

python examples/langchain_agent.py [MODEL]    the bundled model, or one that --model can name
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.errors import GraphRecursionError
from langsmith import tracing_context

from agent.langchain import LocalChatModel
from agent.turn.retrieval import PassageSearch
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index

PASSAGES = Path(__file__).with_name("passages.jsonl")
QUESTION = "How much psyllium husk does gluten-free dough need?"
SYSTEM = "You answer questions from passages. Search for passages first, then answer from them in one sentence."
STEPS = 9  # replies of the model and results of tools, together at most


def print_message(message: BaseMessage) -> None:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    for call in calls:
        print(f"calls     {call['name']} {call['args']}")
    if not calls:
        label = {"tool": "result", "ai": "answer"}.get(message.type, message.type)
        print(f"{label:9} {str(message.text)[:300]}")


def main(index: Path, model: str) -> None:
    build_index(find_corpus([PASSAGES]), index, skip_problems=False, progress=lambda: None)
    agent = create_agent(
        LocalChatModel.open(model, max_tokens=120), [PassageSearch.from_index(index)], system_prompt=SYSTEM
    )
    print(f"asked     {QUESTION}")
    try:
        for step in agent.stream({"messages": [HumanMessage(QUESTION)]}, {"recursion_limit": STEPS}):
            for update in step.values():
                print_message(update["messages"][-1])
    except GraphRecursionError:
        print(f"stopped   after {STEPS} steps without an answer")


if __name__ == "__main__":
    with TemporaryDirectory() as folder, tracing_context(enabled=False):  # an agent would be traced where that is on
        main(Path(folder) / "index", sys.argv[1] if len(sys.argv) > 1 else "smollm2")
