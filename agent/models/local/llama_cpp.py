"""Any instruct GGUF, read by llama.cpp in this process, and a conversation in its own chat format.

A chat template is rendered with a placeholder for every message, so that text from outside can never pose as a chat
marker. What stands between the placeholders is the template's and may hold special tokens (`<|im_end|>`); the messages
are put back as pieces that are tokenized as plain text.
"""

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import llama_cpp
from llama_cpp._internals import LlamaModel

from agent.models.bundled import CHOOSER
from agent.models.learned import hash_learned
from agent.models.local.kv_cache import BATCH, BLOCK, SEQUENCES, KvCache
from agent.models.local.weights import load_adapter, load_weights
from agent.models.protocol import (
    TEMPERATURE,
    Conversation,
    LanguageModel,
    Listener,
    Reply,
    Task,
    TextListener,
    clean_text_reply,
    fit_prompt,
    parse_reply,
    reply_schema,
)
from schemas.errors import InvalidInputError
from schemas.records import Call, Message

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
log = logging.getLogger("convagent")
_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt. Special tokens are recognised in the template's own pieces only."""

    text: str
    from_template: bool


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The Jinja chat template of a GGUF (ChatML where it has none)."""

    source: str
    bos: str = ""
    eos: str = ""

    def render(self, conversation: Conversation, task: Task) -> list[Piece]:
        """The prompt up to the first token of the reply."""
        messages = conversation.messages or (Message("user", ""),)
        contents = [[conversation.system.strip()], *([message.text.strip()] for message in messages)]
        if task.instruction:  # a text of its own, so that the tokens before it are the same without it
            contents[-1].append(("\n\n" if contents[-1][0] else "") + task.instruction.strip())
        roles = ["system", *(message.role for message in messages)]
        rendered = self._with_placeholders(roles)
        if rendered.rstrip().endswith("<think>"):  # a reasoning template opens the thinking itself: close it
            rendered = rendered.rstrip() + "\n\n</think>\n\n"
        pieces: list[Piece] = []
        for position, part in enumerate(_PLACEHOLDER.split(rendered)):
            if position % 2 == 0:
                pieces.append(Piece(part, from_template=True))
            else:
                pieces.extend(Piece(text, from_template=False) for text in contents[int(part)])
        pieces.append(Piece(task.opening, from_template=False))
        return [piece for piece in pieces if piece.text]

    def _with_placeholders(self, roles: list[str]) -> str:
        from jinja2 import TemplateError
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        formatter: Any = Jinja2ChatFormatter(template=self.source, eos_token=self.eos, bos_token=self.bos)
        messages = [{"role": role, "content": f"\ue000{n}\ue001"} for n, role in enumerate(roles)]
        try:
            return str(formatter(messages=messages, enable_thinking=False).prompt)
        except (TemplateError, ValueError):  # some know no system role: it then opens the first utterance
            system, first, *rest = messages
            merged = {"role": "user", "content": f"{system['content']}\n\n{first['content']}"}
            return str(formatter(messages=[merged, *rest], enable_thinking=False).prompt)


MAX_CONTEXT = 8192  # tokens; enough for a long conversation and five passages, and modest in memory
WRITER_PARAMETERS = 1_000_000_000  # smaller models write worse than they pick (docs/log.md)
ADAPTER_CONTEXT = 1024  # tokens: what a task that was taught reads is short
MAX_COMPARED_WORDS = 90  # of a question, the last, and of each text that is held against it, the first
ADAPTER_TEMPLATE = (  # what adapters are taught with: ChatML without a system message
    "{% for message in messages if message.role != 'system' %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
REPEAT_PENALTY, REPEAT_WINDOW = 1.1, 256  # without it a 135M model repeats itself for ever


@dataclass(slots=True)
class LlamaCppModel(LanguageModel):
    """The default backend. Opened by `open_gguf`."""

    name: str
    digest: str
    listen: Listener
    _weights: LlamaModel
    _context: KvCache
    _template: ChatTemplate
    settings: str = ""
    runs_here: bool = True
    writes_answers: bool = False
    has_likelihoods: bool = True
    adapters: Mapping[str, Any] = field(default_factory=dict)  # as llama.cpp has them
    _taught: dict[str, "LlamaCppModel"] = field(default_factory=dict)  # the same weights, each with an adapter

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        if task.adapter:
            return self._with_adapter(task.adapter).ask(conversation, replace(task, adapter=""), reply, on_text)
        started, before = time.perf_counter(), self._context.usage.copy()
        prompt, tokens, omitted = self._prompt(conversation, task, room=task.max_tokens)
        schema = None if reply is str else reply_schema(reply)
        self._context.read(tokens)
        with self._sampler(schema, task.seed) as sampler:
            text = self._write(self._context.write(sampler, task.max_tokens), on_text)
        self._report_call(Call(task.name, "ask", prompt, text, omitted=omitted), started, before)
        return clean_text_reply(text, task) if reply is str else parse_reply(text, reply, task)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        if not candidates:
            return []
        started, before = time.perf_counter(), self._context.usage.copy()
        space = " " if task.opening else ""
        tokenized = [self._tokenize(Piece(space + text, from_template=False))[:BATCH] for text in candidates]
        prompt, tokens, omitted = self._prompt(conversation, task, room=sum(map(len, tokenized)))
        self._context.read(tokens)
        scores = self._context.score(tokenized)
        call = Call(task.name, "score", prompt, "", tuple(candidates), tuple(scores), omitted=omitted)
        self._report_call(call, started, before)
        return scores

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        is_taught = CHOOSER in self.adapters
        return self._with_adapter(CHOOSER)._compare(question, texts) if is_taught else [0.0] * len(texts)

    def _compare(self, question: str, texts: Sequence[str]) -> list[float]:
        """A prompt for each text, the question first; whether "yes" is likelier than "no" after it."""
        started, before = time.perf_counter(), self._context.usage.copy()
        asked = Conversation("", (Message("user", " ".join(question.split()[-MAX_COMPARED_WORDS:])),))
        shown = [" ".join(text.split(" ")[:MAX_COMPARED_WORDS]) for text in texts]
        prompts = [self._tokens(self._template.render(asked, Task("compare", text, "\n"))) for text in shown]
        own = (n for n, tokens in enumerate(zip(*prompts, strict=False)) if len(set(tokens)) > 1)
        shared = next(own, min(map(len, prompts)) - 1)
        self._context.read(prompts[0][:shared])
        yes, no = (self._tokenize(Piece(word, from_template=False))[0] for word in ("yes", "no"))
        odds = self._context.weigh([prompt[shared:] for prompt in prompts], yes, no)
        self._report_call(
            Call("compare", "score", asked.messages[0].text, "", tuple(shown), tuple(odds)), started, before
        )
        return odds

    def close(self) -> None:
        for taught in self._taught.values():
            taught._context.close()
        self._context.close()
        self._weights.close()

    def _with_adapter(self, name: str) -> "LlamaCppModel":
        """These weights with an adapter, opened when it is asked first."""
        if name not in self._taught:
            context = KvCache(self._weights.model, ADAPTER_CONTEXT, self._context.threads, self.adapters[name])
            template = ChatTemplate(ADAPTER_TEMPLATE)
            self._taught[name] = LlamaCppModel(self.name, self.digest, self.listen, self._weights, context, template)
        self._taught[name].listen = self.listen
        return self._taught[name]

    def _prompt(self, conversation: Conversation, task: Task, room: int) -> tuple[str, list[int], tuple[str, ...]]:
        """The prompt and its tokens, with `room` for the reply, and what it has no room for."""

        def render(shorter: Conversation) -> tuple[str, list[int]]:
            pieces = self._template.render(shorter, task)
            return "".join(piece.text for piece in pieces), self._tokens(pieces)

        (prompt, tokens), omitted = fit_prompt(
            conversation, task, self._context.size - room, render, lambda prompt: len(prompt[1])
        )
        return prompt, tokens, omitted

    def _tokens(self, pieces: Sequence[Piece]) -> list[int]:
        tokens = [token for piece in pieces for token in self._tokenize(piece)]
        bos = self._weights.token_bos()
        if llama_cpp.llama_vocab_get_add_bos(self._vocab) and tokens[0] != bos:
            tokens.insert(0, bos)
        return tokens

    @property
    def _vocab(self) -> Any:
        return llama_cpp.llama_model_get_vocab(self._weights.model)

    def _tokenize(self, piece: Piece) -> list[int]:
        text = piece.text.encode("utf-8", "replace")
        return list(self._weights.tokenize(text, add_bos=False, special=piece.from_template))

    def _detokenize(self, tokens: Sequence[int]) -> str:
        return str(self._weights.detokenize(list(tokens)).decode("utf-8", "ignore"))

    def _write(self, tokens: Iterator[int], on_text: TextListener | None) -> str:
        """The text of these tokens up to the one that ends a reply."""
        written: list[int] = []
        for token in tokens:
            if llama_cpp.llama_vocab_is_eog(self._vocab, token):
                break
            written.append(token)
            if on_text is not None:
                on_text(self._detokenize(written))
        return self._detokenize(written)

    @contextmanager
    def _sampler(self, schema: dict[str, Any] | None, seed: int | None) -> Iterator[Any]:
        """Repeats itself less, and is held to a JSON Schema where there is one; greedy unless there is a seed."""
        from llama_cpp.llama_grammar import json_schema_to_gbnf

        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        add = llama_cpp.llama_sampler_chain_add
        if schema is not None:
            grammar = json_schema_to_gbnf(json.dumps(schema)).encode()
            add(chain, llama_cpp.llama_sampler_init_grammar(self._vocab, grammar, b"root"))
        vocabulary = self._weights.n_vocab()
        add(chain, llama_cpp.llama_sampler_init_penalties(vocabulary, REPEAT_WINDOW, REPEAT_PENALTY, 0.0, 0.0))
        if seed is None:
            add(chain, llama_cpp.llama_sampler_init_greedy())
        else:
            add(chain, llama_cpp.llama_sampler_init_temp(TEMPERATURE))
            add(chain, llama_cpp.llama_sampler_init_dist(seed))
        try:
            yield chain
        finally:
            llama_cpp.llama_sampler_free(chain)

    def _report_call(self, call: Call, started: float, before: Counter[str]) -> None:
        used, seconds = self._context.usage - before, round(time.perf_counter() - started, 4)
        self.listen(replace(call, tokens_read=used["read"], tokens_written=used["written"], seconds=seconds))


def open_gguf(
    path: Path, name: str, digest: str, threads: int, listen: Listener, adapters: Mapping[str, Path]
) -> LlamaCppModel:
    """Load a GGUF, and the adapters that were made for it; one that cannot be loaded is said, and left out.

    Raises `InvalidInputError` when llama.cpp cannot read the file or it is not a language model.
    """
    weights = load_weights(path)
    ends = [
        "" if token < 0 else str(weights.detokenize([token], special=True).decode("utf-8", "ignore"))
        for token in (weights.token_bos(), weights.token_eos())
    ]
    template = ChatTemplate(weights.metadata().get("tokenizer.chat_template") or CHATML, *ends)
    return LlamaCppModel(
        name,
        digest,
        listen,
        weights,
        KvCache(weights.model, min(MAX_CONTEXT, weights.n_ctx_train()), threads),
        template,
        decoding_constants(adapters.values()),
        writes_answers=int(llama_cpp.llama_model_n_params(weights.model)) >= WRITER_PARAMETERS,
        adapters=dict(_load_adapters(weights, adapters)),
    )


def _load_adapters(weights: LlamaModel, paths: Mapping[str, Path]) -> Iterator[tuple[str, Any]]:
    for name, path in paths.items():
        try:
            yield name, load_adapter(weights, path)
        except InvalidInputError as error:
            log.warning("The model answers without what it was taught: %s", error)


def decoding_constants(adapters: Iterable[Path]) -> str:
    """Sampling, the shapes of batches, and what the model was taught, which decide replies on every processor."""
    constants = (MAX_CONTEXT, REPEAT_PENALTY, REPEAT_WINDOW, TEMPERATURE, BLOCK, BATCH, SEQUENCES)
    return f"{(*constants, *map(hash_learned, adapters))}"
