"""The passages of an index as LangChain's retriever, and a local model as its chat model, with tools.

A reply with tools is either the call of a tool or the answer: {"tool": "passage_search", "arguments": {"query": ...}}
or {"tool": "none", "answer": ...}. Its type is built from the argument schemas of the tools, and the grammar allows
nothing else, so that even a small model's calls can be read. A reply comes as a whole, even where it is streamed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Union
from uuid import uuid4

import msgspec
from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langsmith import tracing_context
from msgspec import Meta
from pydantic import PrivateAttr

import prompts
from agent.models.bundled import REWRITER
from agent.models.protocol import Conversation, Task
from agent.models.registry import open_embedder, open_model
from agent.turn.query_rewriting import NoCall, call_search, complete_rewrite
from agent.turn.retrieval import PASSAGE_SEARCH, open_retriever_in
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from schemas.errors import UsageError
from schemas.records import Message, Passage, Plan, Query

NO_TOOL = "none"
_FOUND = re.compile(r"^\[([^\]]+)\] (.*)", re.MULTILINE)  # a passage in the reply of the search
TEXT_LIMIT = 1000  # characters of each text in a reply with tools; a small model might never end
LIST_LIMIT = 16  # entries of each list in a reply with tools
Tool = Mapping[str, Any]  # name, description and parameters (a JSON Schema), as OpenAI has them


class Untraced:
    """Called by itself, it is never traced, whatever the environment says: nothing leaves the machine."""

    def invoke(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return super().invoke(*arguments, **settings)  # type: ignore[misc]

    async def ainvoke(self, *arguments: Any, **settings: Any) -> Any:
        with tracing_context(enabled=False):
            return await super().ainvoke(*arguments, **settings)  # type: ignore[misc]


class PassageRetriever(Untraced, BaseRetriever):
    """Finds the `k` best passages of one index for a question, best first.

    The metadata of a document are `id`, `title`, `url` (empty where the passage has none) and `score` (higher is
    better, comparable within one question only).
    """

    retriever: Any  # HybridRetriever
    k: int = 5

    @classmethod
    def from_index(cls, directory: Path | str, embedder: str | None = None, k: int = 5) -> "PassageRetriever":
        """The retriever for an index directory; `embedder` and the errors are those of `open_retriever_in`."""
        return cls(retriever=open_retriever_in(directory, embedder), k=k)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.retriever.find([(query, 1.0)], [(query, 1.0)], self.k)
        passages = self.retriever.read([hit.id for hit in hits])
        return [
            Document(
                passage.text,
                id=passage.id,
                metadata={"id": passage.id, "title": passage.title, "url": passage.url, "score": hit.score},
            )
            for hit, passage in zip(hits, passages, strict=True)
        ]


class LocalChatModel(Untraced, BaseChatModel):
    """A chat model over any `LanguageModel`. Without a system message, it is given `prompts/system.txt`.

    Threads take turns.
    """

    llm: Any  # LanguageModel
    embedder: Any = None  # Embedder, which chooses what answers for a model that was taught to search
    max_tokens: int = 512  # of a reply
    seed: int | None = None  # with one, replies are sampled, repeatably; without, they are the likeliest
    _lock: Lock = PrivateAttr(default_factory=Lock)

    @classmethod
    def open(cls, name: str = "smollm2", **settings: Any) -> "LocalChatModel":
        """Open a model by its name; `settings` are the fields above. Raises what `open_model` raises."""
        llm = open_model(name)
        if not llm.generates_text:
            raise UsageError(f"the model {name!r} writes nothing: a chat needs a language model")
        return cls(llm=llm, **{"embedder": open_embedder(None) if REWRITER in llm.adapters else None} | settings)

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **settings: Any) -> Runnable[Any, AIMessage]:
        """The model with tools. `tool_choice` says whether it must call one: "any", or the name of a tool.

        Raises `UsageError` for a tool that there is not, or one that is named "none".
        """
        described = [convert_to_openai_tool(tool) for tool in tools]
        _allowed_tools(described, tool_choice)
        return self.bind(tools=described, tool_choice=tool_choice, **settings)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **settings: Any,
    ) -> ChatResult:
        tools, may_answer = _allowed_tools(settings.get("tools", ()), settings.get("tool_choice"))
        conversation = _to_conversation(messages)
        with self._lock:
            searches = REWRITER in self.llm.adapters and PASSAGE_SEARCH in [tool["name"] for tool in tools]
            if searches and isinstance(messages[-1], HumanMessage):
                reply = self._search(conversation)
            elif searches and isinstance(messages[-1], ToolMessage) and messages[-1].name == PASSAGE_SEARCH:
                reply = self._answer_from(messages)
            elif tools:
                reply = self._choose_tool(conversation, tools, may_answer)
            else:
                task = Task("chat", max_tokens=self.max_tokens, seed=self.seed)
                reply = AIMessage(self.llm.ask(conversation, task, str))
        for end in stop or ():
            reply.content = str(reply.content).split(end)[0]
        reply.response_metadata = {"model_name": self.llm.name}
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _search(self, conversation: Conversation) -> AIMessage:
        """The call that the small model was taught; of what asks nothing, a reply without one."""
        call = call_search(conversation.messages, self.llm)
        if isinstance(call, NoCall):
            return AIMessage(self.llm.ask(conversation, Task("chat", max_tokens=self.max_tokens, seed=self.seed), str))
        rewrite = complete_rewrite(call.arguments.query, conversation.messages) if call else ""
        return _make_call(PASSAGE_SEARCH, {"query": rewrite or conversation.messages[-1].text})

    def _answer_from(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """What the passages that were found say, quoted as `convagent` does, with ids."""
        calls = [call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
        asked = [call["args"]["query"] for call in calls if call["name"] == PASSAGE_SEARCH]
        query = Query(
            asked[-1] if asked else next(_read_text(one) for one in messages if isinstance(one, HumanMessage))
        )
        passages = [Passage(id, text) for id, text in _FOUND.findall(_read_text(messages[-1]))]
        [response] = generate_responses(query, (), passages, Writer(self.llm), self.embedder, Plan(words=60))
        said = (" ".join([each.text, *(f"[{id}]" for id in each.passage_ids)]) for each in response.sentences)
        return AIMessage(" ".join(said))

    def _choose_tool(self, conversation: Conversation, tools: Sequence[Tool], may_answer: bool) -> AIMessage:
        shown = []
        for tool in tools:
            about = tool.get("parameters", {}).get("properties", {}).items()
            arguments = [f"{name} ({each.get('description', each.get('type', ''))})" for name, each in about]
            described = {"description": tool.get("description", ""), "arguments": "; ".join(arguments)}
            shown.append({"name": tool["name"], **described})
        prompt = prompts.render("tools", tools=shown, may_answer=may_answer)
        task = Task("tools", prompt.instruction, prompt.opening, self.max_tokens, self.seed)
        reply = msgspec.to_builtins(self.llm.ask(conversation, task, make_reply_type(tools, may_answer)))
        return AIMessage(reply["answer"]) if reply["tool"] == NO_TOOL else _make_call(reply["tool"], reply["arguments"])

    @property
    def _llm_type(self) -> str:
        return "convagent"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        """What decides the replies, for LangChain's cache."""
        return {"digest": self.llm.digest, "max_tokens": self.max_tokens, "seed": self.seed}


def _make_call(tool: str, arguments: Mapping[str, Any]) -> AIMessage:
    call = {"name": tool, "args": dict(arguments), "id": f"call_{uuid4().hex}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def make_reply_type(tools: Sequence[Tool], may_answer: bool) -> Any:
    """The msgspec type of a reply: the call of a tool, or the answer. The field `tool` tells them apart.

    Arguments are held to the tool's own schema by whatever writes the reply; the tool itself checks them.
    """
    answer: Any = Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT)]
    types = []
    for n, tool in enumerate(tools):
        schema = _limit(tool.get("parameters", {"type": "object"}))
        arguments: Any = Annotated[dict[str, Any], Meta(extra_json_schema=schema)]
        types.append(msgspec.defstruct(f"Reply{n}", [("arguments", arguments)], tag_field="tool", tag=tool["name"]))
    if may_answer:
        types.append(msgspec.defstruct("Answer", [("answer", answer)], tag_field="tool", tag=NO_TOOL))
    return Union[tuple(types)]  # noqa: UP007 - how many there are is not known before


def _limit(schema: Any) -> Any:
    """A JSON Schema in which each text and list has a limit."""
    if isinstance(schema, list):
        return [_limit(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    limits = {"string": {"maxLength": TEXT_LIMIT}, "array": {"maxItems": LIST_LIMIT}}
    kind = schema.get("type")
    limit = limits.get(kind, {}) if isinstance(kind, str) and "enum" not in schema else {}
    return limit | {name: _limit(value) for name, value in schema.items()}


def _allowed_tools(tools: Sequence[Mapping[str, Any]], choice: Any) -> tuple[list[Tool], bool]:
    """The tools that may be called, and whether the model may answer instead.

    `choice` has LangChain's forms: None, "auto", "none", "any", "required", a bool, a tool's name, or OpenAI's object.
    """
    described: list[Tool] = [tool["function"] for tool in tools]
    if any(tool["name"] == NO_TOOL for tool in described):
        raise UsageError(f"a tool cannot have the name {NO_TOOL!r}", remedy="It stands for the answer.")
    if choice in (None, False, "auto"):
        return described, True
    if choice == "none":
        return [], True
    if choice in (True, "any", "required"):
        return described, False
    name = choice["function"]["name"] if isinstance(choice, Mapping) else choice
    wanted = [tool for tool in described if tool["name"] == name]
    if not wanted:
        raise UsageError(f"no tool has the name {name!r} (there are: {', '.join(tool['name'] for tool in described)})")
    return wanted, False


def _to_conversation(messages: Sequence[BaseMessage]) -> Conversation:
    """LangChain's messages as ours. Consecutive messages of one side are joined, as chat templates want it."""
    system = "\n\n".join(_read_text(message) for message in messages if isinstance(message, SystemMessage))
    others = [_to_message(message) for message in messages if not isinstance(message, SystemMessage)]
    rows = groupby(others, key=lambda message: message.role)
    joined = tuple(Message(role, "\n\n".join(message.text for message in row)) for role, row in rows)
    if joined and joined[-1].role == "assistant":
        raise UsageError("the last message is the model's own", remedy="End with what it is to reply to.")
    return Conversation(system or prompts.render("system").instruction, joined)


def _to_message(message: BaseMessage) -> Message:
    """One message. The result of a tool becomes a message of the user, marked as quoted."""
    match message:
        case HumanMessage():
            return Message("user", _read_text(message))
        case ToolMessage():
            shown = prompts.render("result", tool=message.name or "the tool", text=_read_text(message))
            return Message("user", shown.instruction)
        case AIMessage():
            calls = [{"tool": call["name"], "arguments": call["args"]} for call in message.tool_calls]
            said = [str(message.text), *map(json.dumps, calls)]
            return Message("assistant", "\n".join(filter(None, said)))  # a call as the model writes it
    raise UsageError(f"a message of the kind {message.type!r} cannot be shown to this model")


def _read_text(message: BaseMessage) -> str:
    """The text of a message. Raises `UsageError` where it holds anything else."""
    others = sorted({str(block["type"]) for block in message.content_blocks} - {"text"})
    if others:
        raise UsageError(f"a message holds {', '.join(others)}: this model reads text only")
    return str(message.text)
