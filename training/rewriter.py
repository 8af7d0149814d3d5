"""Teach SmolLM2-135M to say a turn so that it stands alone: a LoRA adapter for llama.cpp.

    python -m training.rewriter ../shared/data -o DIR
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.query_encoder import to_query
from training.rewrites import read_rewrites, resolve_histories

MAX_TOKENS = 320
RECENT, REPLY_WORDS = 3, 60
HEAD = "<|im_start|>user\n"
TAIL = "<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"


def prompt_of(query):
    """The text that the rewriter reads."""
    earlier = query.earlier_utterances
    shown = list(earlier[-RECENT:]) if len(earlier) <= RECENT + 1 else [earlier[0], *earlier[-RECENT:]]
    if len(earlier) == RECENT + 1:
        shown = list(earlier)
    lines = [f"Q: {t}" for t in shown]
    if query.previous_reply:
        lines.append("A: " + " ".join(query.previous_reply.split()[:REPLY_WORDS]))
    return "\n".join([*lines, f"Q: {query.utterance}", "Rewrite the last question so that it stands alone."])


def find_smollm():
    from agent.models.bundled import find_bundled_gguf

    return find_bundled_gguf()


def load(threads):
    torch.set_num_threads(threads)
    path = find_smollm()
    tok = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.bfloat16)
    return tok, model


def make_rows(data, tok, augment=True):
    found = [e for e in read_rewrites(data) if e.history]
    if augment:
        found += [e for n, e in enumerate(resolve_histories(found)) if n % 2 == 0]
    rows = []
    for e in found:
        head = tok(HEAD, add_special_tokens=False)["input_ids"]
        body = tok(prompt_of(to_query(e)), add_special_tokens=False)["input_ids"]
        tail = tok(TAIL, add_special_tokens=False)["input_ids"]
        out = tok(e.rewrite.strip() , add_special_tokens=False)["input_ids"] + tok(END, add_special_tokens=False)["input_ids"]
        prompt = head + body[-MAX_TOKENS:] + tail
        rows.append((prompt, out))
    return rows


def run(args):
    random.seed(args.seed); torch.manual_seed(args.seed)
    tok, base = load(args.threads)
    config = LoraConfig(r=args.rank, lora_alpha=args.rank, lora_dropout=0.0,
                        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
    model = get_peft_model(base, config)
    for p in model.parameters():
        if p.requires_grad:
            p.data = p.data.float()
    rows = make_rows(args.data, tok, not args.no_augment)
    print(len(rows), "rows", sum(len(p) + len(o) for p, o in rows) / len(rows), "tokens", flush=True)
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=args.rate, weight_decay=0.0)
    steps = args.steps
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 20) * max(0.05, 1 - s / steps))
    causal = model.base_model.model
    began, step, total = time.time(), 0, 0.0
    model.train()
    args.output.mkdir(parents=True, exist_ok=True)
    while step < steps:
        order = list(range(len(rows))); random.shuffle(order)
        chunks = [sorted(order[i:i + args.batch * 16], key=lambda n: len(rows[n][0]) + len(rows[n][1])) for i in range(0, len(order), args.batch * 16)]
        batches = [c[i:i + args.batch] for c in chunks for i in range(0, len(c) - args.batch + 1, args.batch)]
        random.shuffle(batches)
        for batch in batches[: steps - step]:
            seqs = [rows[n][0] + rows[n][1] for n in batch]
            width = max(map(len, seqs))
            ids = torch.zeros(len(batch), width, dtype=torch.long); mask = torch.zeros_like(ids); where = torch.zeros_like(ids, dtype=torch.bool)
            for k, n in enumerate(batch):
                s = seqs[k]; ids[k, :len(s)] = torch.tensor(s); mask[k, :len(s)] = 1
                where[k, len(rows[n][0]):len(s)] = True
            with torch.autocast("cpu", torch.bfloat16):
                hidden = causal.model(input_ids=ids, attention_mask=mask).last_hidden_state
                picked = hidden[:, :-1][where[:, 1:]]
                logits = causal.lm_head(picked)
            loss = nn.functional.cross_entropy(logits.float(), ids[:, 1:][where[:, 1:]])
            loss.backward()
            nn.utils.clip_grad_norm_(params, 1.0)
            opt.step(); sched.step(); opt.zero_grad(); step += 1; total += loss.item()
            if step % 20 == 0:
                print(f"{step}/{steps} {time.time() - began:.0f}s loss {total / 20:.3f}", flush=True); total = 0.0
            if step % 100 == 0:
                model.save_pretrained(args.output)
    model.save_pretrained(args.output)
    return tok, model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=450)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-augment", action="store_true")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
