"""all-MiniLM-L6-v2 with low-rank changes (LoRA, Hu et al., ICLR 2022) to be learned, and what of it is shipped."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from peft import LoraConfig, get_peft_model
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

from agent.models.embedding.llama_cpp import SCALE, A, B, LlamaCppEncoder, open_encoder
from agent.models.embedding.minilm import NAME, convert_to_gguf, find_weights
from agent.models.embedding.reader import Cut, cut_english
from agent.models.learned import QUERY_ENCODER_BASE
from training.loop import HAS_HALF, pad

WIDTH = 384  # numbers in a state
LAYERS = ["query", "key", "value", "dense"]  # whose weights are changed
TEXTS_AT_ONCE = 32


class ChangedMiniLM(nn.Module):
    """The model; its low-rank changes are all that is learned of it."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        folder = find_weights().parent
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        base = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        changes = LoraConfig(r=rank, lora_alpha=rank, target_modules=LAYERS, lora_dropout=0.05)
        self.bert: Any = get_peft_model(base, changes)

    def states(self, ids: Tensor) -> Tensor:
        """A state for each token: (texts, tokens) to (texts, tokens, 384)."""
        with torch.autocast("cpu", torch.bfloat16, enabled=HAS_HALF):
            found: Tensor = self.bert(input_ids=ids, attention_mask=mask_of(ids)).last_hidden_state
        return found.float()

    @torch.no_grad()
    def embed_unchanged(self, texts: Sequence[str], max_tokens: int) -> Tensor:
        """Unit vectors of texts by the base model, which the passages of an index have, too."""
        vectors = []
        with self.bert.disable_adapter():
            for start in range(0, len(texts), TEXTS_AT_ONCE):
                part = list(texts[start : start + TEXTS_AT_ONCE])
                ids = pad(self.tokenizer(part, truncation=True, max_length=max_tokens)["input_ids"])
                vectors.append(pool(self.states(ids), ids))
        return torch.cat(vectors)


@dataclass(frozen=True, slots=True)
class Base:
    """A model that is taught, in PyTorch, and what cuts texts into its tokens, as the program does."""

    name: str
    encoder: LlamaCppEncoder
    cut: Cut
    bert: Any
    padding: int  # the token
    weights: Mapping[str, Tensor]  # before anything was learned
    rename: Callable[[str], str]  # of a weight, to its name in what is shipped


def open_whole() -> Base:
    """The model, of which all but the embeddings of words is learned."""
    folder = find_weights().parent
    bert: Any = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    bert.embeddings.requires_grad_(False)
    weights = {name: weight.clone() for name, weight in bert.state_dict().items()}
    gguf = convert_to_gguf(find_weights(), QUERY_ENCODER_BASE)
    encoder = open_encoder(gguf, name=NAME, threads=1, by_token=True)
    return Base(NAME, encoder, cut_english(encoder), bert, 0, weights, str)


def mask_of(ids: Tensor) -> Tensor:
    """1 where there is a token, 0 where there is padding."""
    return (ids != 0).long()


def pool(states: Tensor, ids: Tensor) -> Tensor:
    """The mean of each text's states, of length 1."""
    mask = mask_of(ids).unsqueeze(-1).float()
    return nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def changes_as_integers(base: Base) -> dict[str, npt.NDArray[Any]]:
    """Of each weight that was learned the change, as 8-bit integers with a scale a row, by the name in its file."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, weight in base.bert.named_parameters():
        if weight.requires_grad:
            change = (weight.detach() - base.weights[name]).numpy()
            scale = np.abs(change).max(axis=-1, keepdims=True) / 127 + 1e-12
            tensors[base.rename(name)] = np.rint(change / scale).astype(np.int8)
            tensors[f"{base.rename(name)}{SCALE}"] = scale.astype(np.float32)
    return tensors


@torch.no_grad()
def load_integers(base: Base, path: Path) -> dict[str, Tensor]:
    """Add such changes to the weights; returns all that the file has."""
    tensors = {name: torch.from_numpy(values) for name, values in load_file(path).items()}
    assert any(base.rename(name) in tensors for name, weight in base.bert.named_parameters() if weight.requires_grad)
    for name, weight in base.bert.named_parameters():
        if weight.requires_grad and (kept := base.rename(name)) in tensors:
            weight += tensors[kept].float() * tensors[f"{kept}{SCALE}"]
    return tensors


def save_changes(model: ChangedMiniLM, heads: Mapping[str, nn.Linear], path: Path) -> None:
    """Write what was learned as 16-bit floats: the changes, and each head as its weights and constant."""
    tensors = {}
    for name, weight in model.bert.named_parameters():
        for found, ours in ((".lora_A.default.weight", A), (".lora_B.default.weight", B)):
            if name.endswith(found):
                stem = name.removesuffix(found).removeprefix("base_model.model.")
                tensors[stem + ours] = weight.detach().to(torch.float16).contiguous()
    for name, head in heads.items():
        tensors[name] = torch.cat([head.weight.detach().flatten(), head.bias.detach()]).to(torch.float16)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata={"base": NAME})
