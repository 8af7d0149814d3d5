"""What a turn costs, against a naive chain of three chat completions with the same library and the same file.

    python benchmarks/turn.py TOPICS INDEX [--every 4] [--json FILE]

The naive chain is what one writes first: `llama_cpp.Llama(file)` with its default settings (but a context that holds
the prompts), asked for a rewrite, for the statements that matter, and for an answer from five passages that BM25 found
for its rewrite; each prompt opens with its own instructions, as tutorials have it. Ours is what `convagent answer`
does. Each runs in a process of its own over every fourth conversation, whole ones, since ours keeps what it has read
from turn to turn. Then the same conversations are answered twice on the command line with an empty cache, and with two
jobs.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.tracks.files import read_topics
from schemas.records import Passage, Statement, Topic

CONTEXT = 8192  # tokens, of both
SHOWN = 5  # passages
PREPARE = (  # the copies in the cache
    "from agent.models.registry import open_model; from agent.models.registry import open_embedder; "
    "open_model('smollm2'); open_embedder('minilm')"
)
MOST = {"rewrite": 64, "statements": 32, "answer": 250}  # tokens of the naive chain's replies


@dataclass(slots=True)
class Cost:
    """Sums over all turns."""

    turns: int = 0
    read: int = 0  # prompt tokens computed
    written: int = 0
    seconds: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)  # seconds
    memory: int = 0  # bytes, at the peak of the process

    def spend(self, step: str, seconds: float) -> None:
        self.steps[step] = self.steps.get(step, 0.0) + seconds


def naive(topics: Sequence[Topic], index: Path) -> Cost:
    """Three chat completions a turn."""
    import llama_cpp

    from agent.models.bundled import find_bundled_gguf
    from indexes.passage_index import PassageIndex

    class Counted(llama_cpp.Llama):  # type: ignore[misc]
        """Notes how many tokens are computed at a time: the first batch of a completion is its prompt."""

        batches: list[int]

        def eval(self, tokens: Sequence[int]) -> None:
            self.batches.append(len(tokens))
            super().eval(tokens)

    model = Counted(str(find_bundled_gguf()), n_ctx=CONTEXT, verbose=False)
    passages = PassageIndex(index)
    cost = Cost()

    def ask(step: str, instructions: str, conversation: Sequence[tuple[str, str]]) -> str:
        model.batches = []
        messages: list[Any] = [{"role": "system", "content": instructions}]
        messages += [{"role": role, "content": text} for role, text in conversation]
        started = time.perf_counter()
        reply: Any = model.create_chat_completion(messages, max_tokens=MOST[step])
        cost.spend(step, time.perf_counter() - started)
        cost.read += model.batches[0]
        cost.written += reply["usage"]["completion_tokens"]
        return str(reply["choices"][0]["message"]["content"])

    for topic in topics:
        for turn in topic.turns:
            said = [(message.role, message.text) for message in turn.history or ()]
            conversation = [*said, ("user", turn.utterance)]
            started = time.perf_counter()
            known = _list_statements(topic.ptkb)
            rewrite = ask("rewrite", "Rewrite the last question so that it can be understood alone.", conversation)
            ask("statements", f"Which of these statements matter? Reply with numbers.\n{known}", conversation)
            found = passages.read([hit.id for hit in passages.search([(rewrite, 1.0)], SHOWN)])
            ask("answer", f"Answer from these passages.\n{_quote_passages(found)}\n{known}", conversation)
            cost.seconds += time.perf_counter() - started
            cost.turns += 1
    return cost


def _list_statements(statements: Sequence[Statement]) -> str:
    return "\n".join(f"{statement.id}. {statement.text}" for statement in statements)


def _quote_passages(passages: Sequence[Passage]) -> str:
    return "\n\n".join(f"[{n}] {passage.text}" for n, passage in enumerate(passages, start=1))


def ours(topics: Sequence[Topic], index: Path) -> Cost:
    """The default of `convagent answer`, without its cache on disk."""
    from agent.flow import Tools, answer_topic
    from agent.models.registry import open_embedder, open_model
    from agent.turn.retrieval import Searcher
    from indexes.passage_index import PassageIndex
    from indexes.ranking.hybrid import open_retriever
    from schemas.records import Call, Plan

    plan, calls, cost = Plan(min_probability=0.0), list[Call](), Cost()
    embedder = open_embedder("minilm")
    retriever = open_retriever(PassageIndex(index), embedder, plan)
    searcher = Searcher(retriever, plan, calls.append)
    tools = Tools(open_model("smollm2", calls.append), searcher.search, searcher.read, plan, embedder)
    for topic in topics:
        started = time.perf_counter()
        for _ in answer_topic(topic, tools):
            seconds = time.perf_counter() - started
            for call in calls:
                cost.spend(call.step, call.seconds)
            cost.spend("sentences, vectors and the rest", seconds - sum(call.seconds for call in calls))
            cost.read += sum(call.tokens_read for call in calls)
            cost.written += sum(call.tokens_written for call in calls)
            cost.seconds += seconds
            cost.turns += 1
            calls.clear()
            started = time.perf_counter()
    return cost


WAYS = {"convagent": ours, "naive chain": naive}


def measure_process(way: str, options: argparse.Namespace) -> Cost:
    """The cost of one way, in a process of its own."""
    command = [sys.executable, __file__, str(options.topics), str(options.index), "--every", str(options.every)]
    done = subprocess.run([*command, "--only", way], stdout=subprocess.PIPE, check=True)
    return Cost(**json.loads(done.stdout))


def print_costs(costs: dict[str, Cost]) -> None:
    print("| | tokens read | tokens written | seconds | peak memory |\n|---|---|---|---|---|")
    for way, cost in costs.items():
        read, written, seconds = (total / cost.turns for total in (cost.read, cost.written, cost.seconds))
        print(f"| {way}, a turn | {read:.0f} | {written:.0f} | {seconds:.2f} | {cost.memory / 2**20:.0f} MB |")
    before, after = costs["naive chain"], costs["convagent"]
    shares = [after.read / before.read, after.written / before.written, after.seconds / before.seconds]
    print(f"| share | {' | '.join(f'{share:.3f}' for share in shares)} | {after.memory / before.memory:.2f} |\n")
    for way, cost in costs.items():
        steps = ", ".join(f"{step} {seconds / cost.turns:.2f}" for step, seconds in cost.steps.items())
        print(f"{way}, seconds a turn by step: {steps}")


def print_repeated(options: argparse.Namespace) -> dict[str, float]:
    """Seconds of runs of the same conversations, and whether they are the same to the byte."""
    seconds: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        topics = _topics_file(options, Path(folder))
        cached = os.environ | {"CONVAGENT_CACHE": f"{folder}/cache"}
        subprocess.run([sys.executable, "-c", PREPARE], env=cached, check=True)
        runs = {}
        for name, flags in {
            "first": [],
            "again": [],
            "--no-cache --jobs 2": ["--no-cache", "-j", "2"],
        }.items():
            output = Path(folder) / "run.json"
            seconds[name] = _answer(topics, options.index, output, flags, cached)
            runs[name] = output.read_bytes()
        print(f"\n| every conversation of {options.runs_every} | seconds | of the first | bytes |\n|---|---|---|---|")
        for name, taken in seconds.items():
            same = "the same" if runs[name] == runs["first"] else "OTHERS"
            print(f"| {name} | {taken:.1f} | 1 / {seconds['first'] / taken:.1f} | {same} |")
    return seconds


def _answer(topics: Path, index: Path, output: Path, flags: Sequence[str], environment: dict[str, str]) -> float:
    command = [sys.executable, "-m", "cli", "-q", "answer", str(topics), "-i", str(index), "-o", str(output)]
    started = time.perf_counter()
    subprocess.run([*command, *flags, "--overwrite"], env=environment, check=True)
    return time.perf_counter() - started


def _topics_file(options: argparse.Namespace, folder: Path) -> Path:
    """The conversations that are measured, as a topics file of their own."""
    path = folder / "topics.json"
    path.write_text(json.dumps(json.loads(options.topics.read_text())[:: options.runs_every]))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", type=Path, help="A topics file of iKAT, a list of conversations.")
    parser.add_argument("index", type=Path)
    parser.add_argument("--every", type=int, default=4, help="Every so manieth conversation.")
    parser.add_argument("--runs-every", type=int, help="The same for the repeated runs. Default: as --every.")
    parser.add_argument("--json", type=Path, help="Write the figures there, too.")
    parser.add_argument("--only", choices=[*WAYS, "runs"], help="One part alone; of a way, its sums as JSON.")
    options = parser.parse_args()
    options.runs_every = options.runs_every or options.every
    topics = read_topics(options.topics).topics[:: options.every]
    if options.only == "runs":
        print_repeated(options)
        return
    if options.only:
        cost = WAYS[options.only](topics, options.index)
        cost.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(asdict(cost)))
        return
    print(f"{len(topics)} conversations, {sum(len(topic.turns) for topic in topics)} turns\n", flush=True)
    costs = {way: measure_process(way, options) for way in WAYS}
    print_costs(costs)
    repeated = print_repeated(options)
    if options.json:
        options.json.write_text(json.dumps({way: asdict(cost) for way, cost in costs.items()} | {"runs": repeated}))


if __name__ == "__main__":
    main()
