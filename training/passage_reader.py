"""Teach all-MiniLM-L6-v2 to read a question with a passage: which of its sentences answer, and whether any does.

    python -m training.passage_reader ../shared/data -o DIR
"""

import argparse
import json
import random
import re
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from training.query_encoder import Encoder, pad

MAX_TOKENS = 256


def clean(s):
    s = s.replace("``", '"').replace("''", '"').replace("-LRB-", "(").replace("-RRB-", ")")
    s = re.sub(r"\s+([.,;:!?%)\]]|'s\b|n't\b)", r"\1", s)
    return re.sub(r"([(\[])\s+", r"\1", s).strip()


def read_clapnq(data):
    rows = []
    for line in (data / "clapnq" / "questions.jsonl").read_text().splitlines():
        r = json.loads(line)
        if len(r["sentences"]) > 60:
            r["sentences"] = r["sentences"][:60]
        n = max(1, len(r["selected"]))
        chosen = [sum(s in sel for sel in r["selected"]) / n for s in r["sentences"]]
        if r["answerable"] and not any(chosen):
            continue
        rows.append({"id": r["id"], "question": r["question"], "title": clean(r["title"]), "sentences": [clean(s) for s in r["sentences"]],
                     "chosen": chosen, "answerable": r["answerable"], "weight": 1.0})
    return rows


def windows(tok, row):
    """Token ids, and for each sentence in it (index, start, end). As many sentences as fit go into one window."""
    head = [tok.cls_token_id, *tok(row["question"], add_special_tokens=False)["input_ids"][:60], tok.sep_token_id,
            *tok(row["title"], add_special_tokens=False)["input_ids"][:20], tok.sep_token_id]
    out, ids, spans = [], list(head), []
    for n, sentence in enumerate(row["sentences"]):
        pieces = tok(sentence, add_special_tokens=False)["input_ids"][:100]
        if len(ids) + len(pieces) + 1 > MAX_TOKENS and spans:
            out.append((ids, spans)); ids, spans = list(head), []
        spans.append((n, len(ids), len(ids) + len(pieces)))
        ids = ids + pieces + [tok.sep_token_id]
    out.append((ids, spans))
    return out


class Reader(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.encoder = Encoder(rank)
        self.sentence = nn.Linear(384, 1)
        self.answerable = nn.Linear(384, 1)

    def forward(self, batch):
        """For each window: scores of its sentences, and of there being an answer."""
        ids = pad([ids for ids, _ in batch]); mask = (ids != 0).long()
        with torch.autocast("cpu", torch.bfloat16):
            states = self.encoder.states(ids, mask)
        states = states.float()
        scores = []
        for n, (_, spans) in enumerate(batch):
            pooled = torch.stack([states[n, a:max(b, a + 1)].mean(0) for _, a, b in spans])
            scores.append(self.sentence(pooled).squeeze(-1))
        return scores, self.answerable(states[:, 0]).squeeze(-1)


def predict(model, rows):
    model.eval(); out = []
    with torch.no_grad():
        for row in rows:
            w = windows(model.encoder.tokenizer, row)
            scores, ans = model(w)
            out.append((torch.cat(scores).numpy(), float(ans.max())))
    return out


def fit(rows, args, seed=0):
    torch.manual_seed(seed); rng = random.Random(seed)
    model = Reader(args.rank)
    tok = model.encoder.tokenizer
    items = [(w, row) for row in rows for w in windows(tok, row)]
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=args.rate, weight_decay=0.01)
    steps = args.epochs * len(items) // args.batch
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / (0.1 * steps)) * max(0.05, 1 - s / steps))
    began, step = time.time(), 0
    sums = np.zeros(4)
    for epoch in range(args.epochs):
        model.train(); rng.shuffle(items)
        for i in range(0, len(items) - args.batch + 1, args.batch):
            part = items[i:i + args.batch]
            scores, ans = model([w for w, _ in part])
            rank = bce = 0.0; ranked = 0
            for (w, row), s in zip(part, scores):
                target = torch.tensor([row["chosen"][n] for n, _, _ in w[1]])
                bce = bce + nn.functional.binary_cross_entropy_with_logits(s, target)
                if target.sum() > 0 and len(target) > 1:
                    rank = rank - (target / target.sum() * s.log_softmax(-1)).sum(); ranked += 1
            has = torch.tensor([float(any(row["chosen"][n] > 0 for n, _, _ in w[1])) for w, row in part])
            a = nn.functional.binary_cross_entropy_with_logits(ans, has)
            loss = bce / len(part) + 0.5 * rank / max(1, ranked) + a
            loss.backward(); nn.utils.clip_grad_norm_(params, 1.0)
            opt.step(); sched.step(); opt.zero_grad(); step += 1
            sums += [1, float(bce) / len(part), float(rank) / max(1, ranked), a.item()]
            if step % 50 == 0:
                print(f"{step}/{steps} {time.time() - began:.0f}s bce {sums[1]/sums[0]:.3f} rank {sums[2]/sums[0]:.3f} answerable {sums[3]/sums[0]:.3f}", flush=True); sums[:] = 0
    return model


def ndcg3(scores, gains):
    order = np.argsort(-np.asarray(scores), kind="stable")
    best = sorted(gains, reverse=True)
    d = lambda g: sum(x / np.log2(k + 2) for k, x in enumerate(g[:3]))
    return d([gains[i] for i in order]) / d(best)


def report(rows, found, name):
    from sklearn.metrics import roc_auc_score
    a = [(r, f) for r, f in zip(rows, found) if r["answerable"] and len(r["sentences"]) > 1]
    first = np.mean([r["chosen"][int(np.argmax(f[0]))] > 0 for r, f in a]); nd = np.mean([ndcg3(f[0], [float(c > 0) for c in r["chosen"]]) for r, f in a])
    y = [r["answerable"] for r in rows]
    for label, s in (("head", [f[1] for f in found]), ("best sentence", [float(np.max(f[0])) for f in found])):
        s = np.array(s); good = np.sort(s[np.array(y)]); cut = good[int(.06 * len(good))]
        print(f"{name} {label}: AUC {roc_auc_score(y, s):.3f} told at 6% {np.mean(s[~np.array(y)] < cut):.3f}")
    print(f"{name}: first selected {first:.3f} nDCG@3 {nd:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=int, default=99)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.output.mkdir(parents=True, exist_ok=True)
    rows = read_clapnq(args.data)
    titles = sorted({r["title"] for r in rows})
    random.Random(3).shuffle(titles)
    fold = {t: n % args.folds for n, t in enumerate(titles)}
    kept, found = [], []
    for k in range(min(args.folds, args.only)):
        train = [r for r in rows if fold[r["title"]] != k]; test = [r for r in rows if fold[r["title"]] == k]
        model = fit(train, args)
        out = predict(model, test)
        report(test, out, f"fold {k}")
        kept += test; found += out
    report(kept, found, "all")
    import pickle
    pickle.dump([(r, f) for r, f in zip(kept, found)], open(args.output / "predictions.pkl", "wb"))


if __name__ == "__main__":
    main()
