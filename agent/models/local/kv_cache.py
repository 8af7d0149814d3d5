"""A llama.cpp context in which a prompt is read once, whatever is then written or scored after it.

llama-cpp-python's `Llama` keeps one sequence; scoring many candidates after one prefix needs several, so this drives
the library's own C functions: the prefix is sequence 0, each candidate a further sequence that shares its cells.

Repeatable to the byte: prompts are read in blocks that start at multiples of `BLOCK`, and cached tokens are reused by
whole blocks only, so a token is always computed in the same batch shape, whatever was in the cache before.
"""

import ctypes
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from agent.models.local.weights import decode_rows, require_memory
from schemas.errors import ModelError, RunError

BLOCK = 64  # tokens; smaller reads little more slowly and rereads less (docs/log.md)
BATCH = 512  # tokens of all candidates in one decode
SEQUENCES = 32  # candidates in one decode
GRAPH_BYTES = 1 << 27  # what a context takes beside its keys, values and logits
FLASH_ATTENTION = False  # slower on a CPU (docs/log.md)

Logits = npt.NDArray[np.float32]


class KvCache:
    """One context of a loaded model. Not for several threads at once."""

    def __init__(self, model: Any, size: int, threads: int, adapter: Any = None) -> None:
        """Of so many tokens for a `llama_model_p`; a `llama_adapter_lora_p` is always on."""
        self.size, self.threads = size, threads
        self.usage = Counter[str]()  # tokens that were "read" and "written" since it was made
        self._tokens: list[int] = []  # what was read into sequence 0
        require_memory(_context_bytes(model, size))
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = size, BATCH, BATCH
        params.n_seq_max, params.kv_unified = SEQUENCES + 1, True
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = int(FLASH_ATTENTION)  # LLAMA_FLASH_ATTN_TYPE_DISABLED is 0, _ENABLED 1
        params.no_perf = True
        self._context: Any = llama_cpp.llama_init_from_model(model, params)
        if not self._context:
            raise RunError(f"llama.cpp could not make a context of {size} tokens", remedy="Use a smaller one.")
        if adapter:
            adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
            llama_cpp.llama_set_adapters_lora(self._context, adapters, 1, (ctypes.c_float * 1)(1.0))
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)

    def read(self, tokens: Sequence[int]) -> None:
        """Make `tokens` the contents of sequence 0, with fresh logits at its end; only what is new is computed."""
        pairs = enumerate(zip(self._tokens, tokens, strict=False))
        shared = next((n for n, (old, new) in pairs if old != new), min(len(self._tokens), len(tokens)))
        kept = self._forget_from(min(shared, len(tokens) - 1) // BLOCK * BLOCK)
        for start in range(kept, len(tokens), BLOCK):
            block = list(tokens[start : start + BLOCK])
            last = start + BLOCK >= len(tokens)
            self._decode([(token, start + n, 0, last and n == len(block) - 1) for n, token in enumerate(block)])
            self._tokens.extend(block)
        self.usage["read"] += len(tokens) - kept

    def write(self, sampler: Any, limit: int) -> Iterator[int]:
        """Tokens sampled one by one from the end of sequence 0, at most `limit`, and to the context's end."""
        start = len(self._tokens)
        for position in range(start, min(start + limit, self.size)):
            token = llama_cpp.llama_sampler_sample(sampler, self._context, -1)
            self.usage["written"] += 1
            yield token
            self._decode([(token, position, 0, True)])

    def score(self, candidates: Sequence[Sequence[int]]) -> list[float]:
        """The natural-log likelihood of each candidate right after sequence 0, which must just have been read."""
        first = log_softmax(self._logits(1), axis=1)[0]
        scores = [0.0] * len(candidates)
        for group in _split_into_batches([len(candidate) for candidate in candidates]):
            for n, score in zip(group, self._score_group([candidates[n] for n in group]), strict=True):
                scores[n] = float(first[candidates[n][0]]) + score
        return scores

    def _score_group(self, group: Sequence[Sequence[int]]) -> list[float]:
        """The likelihood of everything after each candidate's first token, in one decode."""
        start = len(self._tokens)
        rows = [
            (token, start + place, sequence, True)
            for sequence, candidate in enumerate(group, start=1)
            for place, token in enumerate(candidate[:-1])
        ]
        if not rows:
            return [0.0] * len(group)
        targets = [token for candidate in group for token in candidate[1:]]  # what follows each row
        gains = log_softmax(self._read_branches(rows, len(rows)), axis=1)[np.arange(len(rows)), targets]
        ends = np.cumsum([len(candidate) - 1 for candidate in group])
        return [float(part.sum(dtype=np.float64)) for part in np.split(gains, ends[:-1])]

    def weigh(self, candidates: Sequence[Sequence[int]], one: int, other: int) -> list[float]:
        """By how much a token is likelier than another after each candidate, which follows sequence 0; log odds."""
        start, odds = len(self._tokens), list[float]()
        for group in _split_into_batches([len(candidate) for candidate in candidates]):
            rows = [
                (token, start + place, sequence, place == len(candidates[n]) - 1)
                for sequence, n in enumerate(group, start=1)
                for place, token in enumerate(candidates[n])
            ]
            logits = self._read_branches(rows, len(group))
            odds += (logits[:, one] - logits[:, other]).tolist()
        return odds

    def _read_branches(self, rows: Sequence[tuple[int, int, int, bool]], wanted: int) -> Logits:
        """The logits that are wanted of tokens of sequences that go on from sequence 0, in one decode."""
        sequences = sorted({sequence for _, _, sequence, _ in rows})
        try:
            for sequence in sequences:
                llama_cpp.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
            self._decode(rows)
            found = self._logits(wanted)
        finally:  # also when a person breaks off: the next prompt finds no leftovers
            for sequence in sequences:
                llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self.usage["read"] += len(rows)
        return found

    def _forget_from(self, position: int) -> int:
        """Drop sequence 0 from `position` on, with what was written after it. Returns where reading goes on."""
        if not llama_cpp.llama_memory_seq_rm(self._memory, 0, position, -1):  # recurrent models forget all or nothing
            llama_cpp.llama_memory_clear(self._memory, True)
            position = 0
        del self._tokens[position:]
        return position

    def _decode(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        if status := decode_rows(self._context, self._batch, rows):
            raise ModelError(f"llama.cpp could not decode (status {status})", remedy="Use a larger context.")

    def _logits(self, rows: int) -> Logits:
        pointer = llama_cpp.llama_get_logits(self._context)
        flat: Logits = np.ctypeslib.as_array(pointer, shape=(rows * self._vocab_size,))
        return flat.reshape(rows, self._vocab_size)


def _context_bytes(model: Any, size: int) -> int:
    """About what a context of `size` tokens takes: keys and values in half precision, logits twice, and the graph."""
    head_size = llama_cpp.llama_model_n_embd(model) // max(1, llama_cpp.llama_model_n_head(model))
    keys = llama_cpp.llama_model_n_layer(model) * llama_cpp.llama_model_n_head_kv(model) * head_size
    logits = BATCH * llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    return int(2 * 2 * keys * size + 2 * 4 * logits + GRAPH_BYTES)


def _split_into_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Candidates in their given order, cut where a decode is full."""
    group: list[int] = []
    room = BATCH
    for n, length in enumerate(lengths):
        if group and (length > room or len(group) == SEQUENCES):
            yield group
            group, room = [], BATCH
        group.append(n)
        room -= length
    if group:
        yield group
