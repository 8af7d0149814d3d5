"""A GGUF's weights and tokenizer, loaded by llama.cpp so that they can be computed with on any processor."""

import ctypes
import mmap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llama_cpp
from llama_cpp._internals import LlamaModel

from agent.models.learned import REMEDY
from agent.models.local.hardware import layers_to_offload
from schemas.errors import InvalidInputError

LOADING_BYTES = 1 << 26  # what llama.cpp takes beside the weights themselves while it loads them
_LOG_NOTHING = llama_cpp.llama_log_callback(lambda _level, _text, _data: None)


def load_weights(path: Path, *, vocabulary_only: bool = False) -> LlamaModel:
    """Weights, tokenizer and metadata of a GGUF. Raises `InvalidInputError` where llama.cpp cannot read the file.

    `llama_cpp.Llama` would open a context of its own, and cannot say which kernels the weights are laid out for.
    """
    initialise_llama_cpp()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = vocabulary_only
    params.n_gpu_layers = layers_to_offload()
    params.use_extra_bufts = not is_built_with_amx()
    require_memory(path.stat().st_size + LOADING_BYTES)
    try:
        # Told not to be verbose, it would redirect what the whole process prints while it loads.
        return LlamaModel(path_model=str(path), params=params, verbose=True)
    except (ValueError, RuntimeError) as error:
        remedy = "Is the download complete, the architecture known to this llama-cpp-python, and enough memory free?"
        raise InvalidInputError("llama.cpp cannot load this model", where=str(path), remedy=remedy) from error


def load_adapter(weights: LlamaModel, path: Path) -> Any:
    """A LoRA adapter. Raises `InvalidInputError` where llama.cpp cannot read it, or it is for other weights."""
    adapter = llama_cpp.llama_adapter_lora_init(weights.model, str(path).encode())
    if not adapter:
        raise InvalidInputError("llama.cpp cannot load this adapter", where=str(path), remedy=REMEDY)
    return adapter


def decode_rows(context: Any, batch: Any, rows: Sequence[tuple[int, int, int, bool]]) -> int:
    """Compute rows of (token, position, sequence, whether what comes of it is wanted); llama.cpp's status, 0 if all
    went well."""
    batch.n_tokens = len(rows)
    for n, (token, position, sequence, wanted) in enumerate(rows):
        batch.token[n], batch.pos[n], batch.logits[n] = token, position, wanted
        batch.n_seq_id[n] = 1
        batch.seq_id[n][0] = sequence
    return int(llama_cpp.llama_decode(context, batch))


def require_memory(size: int) -> None:
    """Raise `MemoryError` unless `size` bytes can be had now.

    llama.cpp ends the process where one of its smaller allocations fails, so it is given room for all of them or none.
    """
    try:
        mmap.mmap(-1, size).close()
    except OSError as error:
        raise MemoryError(size) from error


@cache
def initialise_llama_cpp() -> None:
    """Prepare llama.cpp, once a process. Its own messages are dropped: what matters becomes an error of ours."""
    llama_cpp.llama_log_set(_LOG_NOTHING, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


def is_built_with_amx() -> bool:
    """Whether this llama.cpp has kernels for Intel's AMX.

    Compiled by GCC 12 or 13 they end the process: the tile configuration is optimised away (ADR 4). Such a build
    therefore gets plain weights, which it multiplies by AVX-512 instead.
    """
    return b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info()


def describe_processor() -> str:
    """This build of llama.cpp and the processor features that it uses: what the last bits of a number hang on."""
    features = llama_cpp.llama_print_system_info().decode().strip(" |")
    plain = ", plain weights" if is_built_with_amx() else ""
    offloaded = f", {layers} layers offloaded" if (layers := layers_to_offload()) else ""
    return f"llama.cpp {llama_cpp.__version__}, {features}{plain}{offloaded}"
