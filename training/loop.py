"""The loop of all training: AdamW, a warm-up and a linear fall, checkpoints that a killed run goes on from."""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

Example = TypeVar("Example")
WARM_UP, FLOOR = 0.1, 0.05  # shares of the steps and of the learning rate
REPORT_EVERY, SAVE_EVERY = 50, 100  # steps
HAS_HALF = torch.cpu._is_avx512_bf16_supported()  # without it 16 bits are many times slower than 32
MAX_NORM = 1.0  # of a gradient


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to learn."""

    steps: int
    rate: float
    seed: int = 0


def read_arguments(description: str, output: Path, usual: Schedule) -> argparse.Namespace:
    """The arguments of a part, with what is usual for it; seed and threads are set, and the folder is there."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with rewrites/")
    parser.add_argument("-o", "--output", type=Path, default=output)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument("--rate", type=float, default=usual.rate)
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--start", type=Path, help="go on from such a file: the readers alone")
    parser.add_argument("--multilingual", action="store_true", help="over multilingual-e5-small: the reader alone")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    torch.set_num_threads(asked.threads)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    return asked


def train(
    model: nn.Module,
    batches: Iterator[Sequence[Example]],
    loss_of: Callable[[Sequence[Example]], Tensor],
    schedule: Schedule,
    checkpoint: Path,
) -> None:
    """Change the weights of a model that ask for it, step by step.

    `batches` must be the same in every run: a run that goes on from its checkpoint skips those it has seen.
    """
    learned = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    optimiser = torch.optim.AdamW(learned.values(), lr=schedule.rate, weight_decay=0.01)
    slope = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate_at(step, schedule.steps))
    done = _resume(checkpoint, schedule, learned, optimiser, slope)
    began, total = time.monotonic(), 0.0
    model.train()
    for step, batch in zip(range(1, schedule.steps + 1), batches, strict=False):
        if step <= done:
            continue
        loss = loss_of(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(list(learned.values()), MAX_NORM)
        optimiser.step()
        slope.step()
        optimiser.zero_grad()
        total += float(loss.detach())
        if step % REPORT_EVERY == 0:
            print(
                f"{step}/{schedule.steps} {time.monotonic() - began:.0f} s loss {total / REPORT_EVERY:.3f}", flush=True
            )
            total = 0.0
        if step % SAVE_EVERY == 0 or step == schedule.steps:
            state = {"step": step, "optimiser": optimiser.state_dict(), "slope": slope.state_dict(), "learned": learned}
            torch.save({**state, "schedule": asdict(schedule), "random": torch.get_rng_state()}, checkpoint)
    model.eval()


def endless_batches(
    batches_of_epoch: Callable[[random.Random], Sequence[Sequence[Example]]], seed: int
) -> Iterator[Sequence[Example]]:
    """Epoch after epoch, each in another order, always the same for a seed."""
    order = random.Random(seed)
    while True:
        yield from batches_of_epoch(order)


def pad(rows: Sequence[Sequence[float]], fill: float = 0) -> Tensor:
    """Rows of equal length, as a tensor."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])


def _rate_at(step: int, steps: int) -> float:
    return min((step + 1) / max(1.0, WARM_UP * steps), max(FLOOR, 1 - step / steps))


def _resume(
    checkpoint: Path,
    schedule: Schedule,
    learned: dict[str, nn.Parameter],
    optimiser: torch.optim.Optimizer,
    slope: torch.optim.lr_scheduler.LambdaLR,
) -> int:
    """Take up what a checkpoint of this schedule has. Returns its step; 0 where there is none."""
    state = torch.load(checkpoint) if checkpoint.exists() else {}
    if state.get("schedule") != asdict(schedule):
        return 0
    with torch.no_grad():
        for name, weight in learned.items():
            weight.copy_(state["learned"][name])
    optimiser.load_state_dict(state["optimiser"])
    slope.load_state_dict(state["slope"])
    torch.set_rng_state(state["random"])
    print(f"going on after step {state['step']}", flush=True)
    return int(state["step"])
