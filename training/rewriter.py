"""Teach SmolLM2-135M to say a turn so that it stands alone: a LoRA adapter that llama.cpp loads.

    python -m training.rewriter ../shared/data [-o FILE] [--steps N] [--seed N]

Learned from rewrites after the questions before, the beginning of the last reply, and the utterance; half of the
turns also after questions that stand alone. The loss is that of the rewrite alone. First turns are not learned: they
stand as they are.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from agent.models.bundled import ADAPTERS, REWRITER, find_bundled_gguf
from agent.models.local.llama_cpp import ADAPTER_TEMPLATE, ChatTemplate
from agent.models.protocol import Conversation, Task
from agent.turn.query_rewriting import compose_rewriter_prompt
from schemas.records import Message
from training.gguf_adapter import write_adapter
from training.loop import Schedule, endless_batches, pad, read_arguments, train
from training.rewrites import RewriteExample, read_rewrites, resolve_histories, to_query

RANK = 16
LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BATCH, BATCHES_SORTED = 8, 16
MAX_TOKENS = 320  # of a prompt; the end is kept
END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Item:
    """An example as tokens."""

    prompt: list[int]
    rewrite: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.rewrite)


class Rewriter(nn.Module):
    """The bundled model, as it is dequantised, with an adapter to be learned."""

    def __init__(self) -> None:
        super().__init__()
        path = find_bundled_gguf()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        base = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.bfloat16)
        self.config: Any = base.config
        changes = LoraConfig(r=RANK, lora_alpha=RANK, target_modules=LAYERS)
        self.adapted: Any = get_peft_model(base, changes)
        for weight in self.adapted.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()

    def make_item(self, example: RewriteExample) -> Item:
        """The prompt as `LlamaCppModel` writes it for an adapter, and the rewrite with its end."""
        asked = Conversation("", (Message("user", compose_rewriter_prompt(to_query(example))),))
        pieces = ChatTemplate(ADAPTER_TEMPLATE).render(asked, Task("rewrite"))
        prompt = [token for piece in pieces for token in self._tokenize(piece.text)]
        return Item(prompt[-MAX_TOKENS:], self._tokenize(example.rewrite.strip() + END))

    def loss(self, batch: Sequence[Item]) -> Tensor:
        ids = pad([[*item.prompt, *item.rewrite] for item in batch]).long()
        mask = pad([[1] * len(item) for item in batch]).long()
        learned = pad([[*[0] * len(item.prompt), *[1] * len(item.rewrite)] for item in batch]).bool()
        causal = self.adapted.base_model.model
        with torch.autocast("cpu", torch.bfloat16):
            states = causal.model(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = causal.lm_head(states[:, :-1][learned[:, 1:]])
        return nn.functional.cross_entropy(logits.float(), ids[:, 1:][learned[:, 1:]])

    def _tokenize(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return found


def make_batches(items: Sequence[Item], order: random.Random) -> list[list[Item]]:
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


def main() -> None:
    asked = read_arguments(__doc__ or "", ADAPTERS[REWRITER], Schedule(450, 5e-4))
    model = Rewriter()
    found = [example for example in read_rewrites(asked.data) if example.history]
    items = list(map(model.make_item, [*found, *islice(resolve_histories(found), 0, None, 2)]))
    print(f"{len(items)} examples", flush=True)
    batches = endless_batches(lambda order: make_batches(items, order), asked.seed)
    checkpoint = asked.output.with_suffix(".checkpoint")
    train(model, batches, model.loss, Schedule(asked.steps, asked.rate, asked.seed), checkpoint)
    learned = {name: weight for name, weight in model.adapted.named_parameters() if weight.requires_grad}
    heads = {"q_proj": model.config.num_attention_heads, "k_proj": model.config.num_key_value_heads}
    write_adapter(learned, heads, RANK, asked.output)
    checkpoint.unlink()


if __name__ == "__main__":
    main()
