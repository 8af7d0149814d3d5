"""multilingual-e5-small in PyTorch: its upper layers are learned, and it reads words cut as the program cuts them."""

from functools import partial
from typing import Any

import torch
from gguf import MODEL_ARCH, GGUFReader, get_tensor_name_map
from gguf.quants import dequantize
from transformers import BertConfig, BertModel

from agent.models.embedding.llama_cpp import open_encoder
from agent.models.embedding.multilingual import NAME, convert_to_gguf, find_weights
from agent.models.embedding.reader import cut_any
from training.minilm import Base

LAYERS, HEADS, PADDING = 12, 12, 1
LAYERS_KEPT = 6  # the lower ones, and the vectors of words, stay as they are


def open_upper() -> Base:
    """The model, of which the upper layers are learned."""
    path = convert_to_gguf(find_weights(), name=f"{NAME}-as-it-stands", keeps_spaces=True)
    read = {each.name: torch.tensor(dequantize(each.data, each.tensor_type)) for each in GGUFReader(path).tensors}
    words, width = read["token_embd.weight"].shape
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=len(read["blk.0.ffn_up.bias"]),
        max_position_embeddings=len(read["position_embd.weight"]),
        type_vocab_size=len(torch.atleast_2d(read["token_types.weight"])),
        hidden_dropout_prob=0.0,  # an epoch is not finished; and dropping takes a third of the time
        attention_probs_dropout_prob=0.0,
    )
    bert: Any = BertModel(config, add_pooling_layer=False)
    rename = partial(get_tensor_name_map(MODEL_ARCH.BERT, LAYERS).get_name, try_suffixes=(".weight", ".bias"))
    shapes = {name: weight.shape for name, weight in bert.named_parameters()}
    weights = {name: read[rename(name)].float().reshape(shape).clone() for name, shape in shapes.items()}
    bert.load_state_dict(weights)
    for part in (bert.embeddings, *bert.encoder.layer[:LAYERS_KEPT]):
        part.requires_grad_(False)
    encoder = open_encoder(path, name=NAME, threads=1, by_token=True)
    return Base(NAME, encoder, cut_any(encoder), bert, PADDING, weights, rename)
