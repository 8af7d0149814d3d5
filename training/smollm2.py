"""SmolLM2-135M with a LoRA adapter to be learned, which llama.cpp loads: a prompt is read, a reply is learned."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from agent.models.bundled import find_bundled_gguf
from agent.models.local.llama_cpp import ADAPTER_TEMPLATE, ChatTemplate
from agent.models.protocol import Conversation, Task
from schemas.records import Message
from training.gguf_adapter import write_adapter
from training.loop import HAS_HALF, Schedule, endless_batches, pad, train

RANK = 16
LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BATCH, BATCHES_SORTED = 8, 16
END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Item:
    """A prompt and its reply as tokens."""

    prompt: list[int]
    reply: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply)


class TaughtSmolLM2(nn.Module):
    """The bundled model, as it is dequantised, with an adapter to be learned."""

    def __init__(self, unchanged: int = 0) -> None:
        """`unchanged`: the lowest layers that stay as they are."""
        super().__init__()
        path = find_bundled_gguf()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        base = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.bfloat16)
        self.config: Any = base.config
        changed = list(range(unchanged, base.config.num_hidden_layers))
        changes = LoraConfig(r=RANK, lora_alpha=RANK, target_modules=LAYERS, layers_to_transform=changed)
        self.adapted: Any = get_peft_model(base, changes)
        for weight in self.adapted.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()

    def make_item(self, prompt: str, reply: str, max_tokens: int) -> Item:
        """The prompt as `LlamaCppModel` writes it for an adapter, its last tokens, and the reply with its end."""
        asked = Conversation("", (Message("user", prompt),))
        pieces = ChatTemplate(ADAPTER_TEMPLATE).render(asked, Task(""))
        tokens = [token for piece in pieces for token in self.tokenize(piece.text)]
        return Item(tokens[-max_tokens:], self.tokenize(reply.strip() + END))

    def loss(self, batch: Sequence[Item]) -> Tensor:
        """The cross entropy of the replies' tokens."""
        ids = pad([[*item.prompt, *item.reply] for item in batch]).long()
        mask = pad([[1] * len(item) for item in batch]).long()
        learned = pad([[*[0] * len(item.prompt), *[1] * len(item.reply)] for item in batch]).bool()
        causal = self.adapted.base_model.model
        with torch.autocast("cpu", torch.bfloat16, enabled=HAS_HALF):
            states = causal.model(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = causal.lm_head(states[:, :-1][learned[:, 1:]])
        return nn.functional.cross_entropy(logits.float(), ids[:, 1:][learned[:, 1:]])

    def tokenize(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    def teach(self, epoch: Callable[[random.Random], Sequence[Any]], schedule: Schedule, output: Path) -> None:
        """Learn the items that `epoch` gives for each time through, and write the adapter."""
        batches: Iterator[Sequence[Any]] = endless_batches(
            lambda order: make_batches(epoch(order), order), schedule.seed
        )
        checkpoint = output.with_suffix(".checkpoint")
        train(self, batches, self.loss, schedule, checkpoint)
        learned = {name: weight for name, weight in self.adapted.named_parameters() if weight.requires_grad}
        heads = {"q_proj": self.config.num_attention_heads, "k_proj": self.config.num_key_value_heads}
        write_adapter(learned, heads, RANK, output)
        checkpoint.unlink()


def make_batches(items: Sequence[Any], order: random.Random) -> list[list[Any]]:
    """All items once, those of a batch of about one length."""
    shuffled = order.sample(list(items), len(items))
    size = BATCH * BATCHES_SORTED
    batches = [
        part[start : start + BATCH]
        for first in range(0, len(shuffled), size)
        for part in [sorted(shuffled[first : first + size], key=len)]
        for start in range(0, len(part) - BATCH + 1, BATCH)
    ]
    order.shuffle(batches)
    return batches
