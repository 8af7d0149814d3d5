"""multilingual-e5-small in PyTorch: its upper layers are learned, and it reads words cut as the program cuts them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from agent.models.embedding.llama_cpp import open_encoder
from agent.models.embedding.multilingual import NAME, convert_to_gguf, find_weights
from agent.models.embedding.reader import cut_any
from training.minilm import Base

LAYERS_KEPT = 6  # the lower ones, and the vectors of words, stay as they are
HEADS = 12
PADDING = 1
PARTS = {"attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value"}
PARTS |= {"attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm"}
PARTS |= {"ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
EMBEDDINGS: Mapping[str, str] = MappingProxyType(
    {
        "token_embd": "word_embeddings",
        "position_embd": "position_embeddings",
        "token_types": "token_type_embeddings",
        "token_embd_norm": "LayerNorm",
    }
)


def open_upper() -> Base:
    """The model, of which the upper layers are learned."""
    from transformers import BertConfig, BertModel

    weights = read_weights()
    words, width = weights["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder")),
        num_attention_heads=HEADS,
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        hidden_dropout_prob=0.0,  # an epoch is not finished; and dropping takes a third of the time
        attention_probs_dropout_prob=0.0,
    )
    bert: Any = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(weights)
    for part in (bert.embeddings, *bert.encoder.layer[:LAYERS_KEPT]):
        part.requires_grad_(False)
    encoder = open_encoder(_convert(), name=NAME, threads=1, by_token=True)
    return Base(NAME, encoder, cut_any(encoder), bert, PADDING, weights, name_in_gguf)


def read_weights() -> dict[str, Tensor]:
    """The base model's weights as floats, by their names in PyTorch."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    found = {}
    for tensor in GGUFReader(_convert()).tensors:
        values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
        name = name_in_torch(tensor.name)
        found[name] = torch.atleast_2d(values) if name.endswith("embeddings.weight") else values
    return found


def _convert() -> Path:
    return convert_to_gguf(find_weights(), name=f"{NAME}-as-it-stands", keeps_spaces=True)


def name_in_torch(name: str) -> str:
    """`blk.3.attn_q.weight` of a GGUF is `encoder.layer.3.attention.self.query.weight`."""
    stem, _, kind = name.rpartition(".")
    if stem in EMBEDDINGS:
        return f"embeddings.{EMBEDDINGS[stem]}.{kind}"
    _, layer, part = stem.split(".")
    return f"encoder.layer.{layer}.{PARTS[part]}.{kind}"


def name_in_gguf(name: str) -> str:
    """The other way round, of a layer's weight."""
    _, _, layer, rest = name.split(".", 3)
    stem, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{next(ours for ours, part in PARTS.items() if part == stem)}.{kind}"
