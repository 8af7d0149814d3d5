"""Whether a conversation's first question gets the same answer when it is asked again at the end.

The question is a turn more, which no run file has: it is answered under the settings of the run's trace, with the
conversation up to the last answer before it, and kept in a trace of its own. A first question needs no conversation to
be understood; what later ones ask for changes with what stands before them, so that another answer may be right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.evaluation.answers import rouge_f1
from agent.evaluation.conversation import ConversationMeasures, Measured
from agent.evaluation.significance import bootstrap_interval
from agent.runs.answer_topics import RunRequest, TurnProgress, plan_workforce
from agent.runs.backends.registry import LOCAL, open_backend
from agent.runs.evidence import EvidenceFiles, open_evidence
from agent.runs.run import answer_remaining, prepare_run
from agent.runs.trace import RunSettings, Trace, new_trace, read_trace, resume_trace
from agent.tracks.topic_files import read_topics
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Message, Topic, Topics, Turn, TurnResult

AGAIN = "again"  # the number of the turn that is added: "9-1_again"
SAME_SOURCES, SAME_WORDS, SAME_TOP = "asked again: sources", "asked again: ROUGE-L", "asked again: top 10"
TOP = 10


@dataclass(frozen=True, slots=True)
class AskAgain:
    """What answers the question again: the index, the model and the embedding model of the run, by their names."""

    topics: Path
    trace: Path  # of the run
    index: Path | None
    model: str
    embedder: str | None = None
    overwrite: bool = False

    @property
    def output(self) -> Path:
        """The trace of what is asked again, beside that of the run."""
        return self.trace.with_name(f"{self.trace.name.removesuffix('.trace.jsonl')}.again.trace.jsonl")


def find_trace(runs: Sequence[Path]) -> Path:
    """The trace beside a run. Raises `UsageError` for several runs: each was made by another system."""
    if len(runs) > 1:
        raise UsageError("--ask-again takes one run", remedy="Ask each run again by itself: the answers are kept.")
    name = runs[0].name.removesuffix(".jsonl").removesuffix(".json")
    return runs[0].with_name(f"{name}.trace.jsonl")


def ask_again(asked: AskAgain, progress: TurnProgress) -> dict[str, dict[str, float]]:
    """The measures of the answers given again, each by conversation.

    What its trace has already is not asked once more. Raises `UsageError` where model or passages are not the run's.
    """
    before = read_trace(asked.trace)
    topics = read_topics(asked.topics)
    _check_whole(before, topics)
    probes = replace(topics, topics=tuple(add_question(topic, before.replies) for topic in topics.topics))
    origin = EvidenceFiles(asked.index, embedder=asked.embedder)
    plan = before.settings.plan
    evidence = open_evidence(origin, probes, plan)
    request = RunRequest(asked.topics, origin, asked.model, plan)
    with open_backend(LOCAL, plan_workforce(request, probes, plan, evidence)) as backend:
        job = prepare_run(probes, evidence.ranking, backend.description, "automatic", plan)
        _check_same(before.settings, job.settings)
        found = (new_trace if asked.overwrite else resume_trace)(asked.output, job.settings)
        with progress(len(probes.topics), len(found.replies)) as on_turn:
            after = answer_remaining(job, backend, found, on_turn)
    firsts = [line.answered for line in before.lines([topic.turns[0].id for topic in topics.topics])]
    agains = [line.answered for line in after.lines([f"{topic.id}_{AGAIN}" for topic in topics.topics])]
    names = (f"{topic.id}_" for topic in topics.topics)
    return compare_answers(dict(zip(names, zip(firsts, agains, strict=True), strict=True)))


def add_question(topic: Topic, replies: Mapping[str, str]) -> Topic:
    """The topic with nothing but its first question, after the whole conversation."""
    first, last = topic.turns[0], topic.turns[-1]
    history = last.history
    if history is None:  # the run's own replies are the conversation
        history = tuple(message for turn in topic.turns[:-1] for message in _exchange(turn, replies))
    return replace(topic, turns=(Turn(f"{topic.id}_{AGAIN}", first.utterance, (*history, *_exchange(last, replies))),))


def _exchange(turn: Turn, replies: Mapping[str, str]) -> tuple[Message, Message]:
    return Message("user", turn.utterance), Message("assistant", replies[turn.id])


def _check_whole(trace: Trace, topics: Topics) -> None:
    if missing := [turn_id for turn_id in topics.turn_ids() if turn_id not in trace.replies]:
        what = f"lacks {len(missing)} of the turns of the topics: {missing[0]}"
        raise InvalidInputError(what, where=str(trace.path), remedy="Finish the run first: answer --resume.")
    if trace.settings.mode != "automatic":
        raise UsageError(
            f"is of a run that is {trace.settings.mode}: only an automatic one is asked again", where=str(trace.path)
        )


def _check_same(then: RunSettings, now: RunSettings) -> None:
    """Raise where something else would answer than answered before: that would compare two systems."""
    pairs = {
        "model": (then.model, then.model_digest, now.model, now.model_digest),
        "embedding model": (then.embedder, then.embedder_digest, now.embedder, now.embedder_digest),
    }
    different = [f"  {name}: {a} then, {b} now" for name, (a, one, b, other) in pairs.items() if one != other]
    different += ["  other passages"] if then.passages != now.passages else []
    if different:
        raise UsageError(
            "\n".join(["is of a run of another system:", *different]), remedy="Name what the run was made with."
        )


def compare_answers(pairs: Mapping[str, tuple[TurnResult, TurnResult]]) -> dict[str, dict[str, float]]:
    """By conversation: the share of all sources that both cite, ROUGE-L F, the share of the first ten passages."""
    values: dict[str, dict[str, float]] = {SAME_SOURCES: {}, SAME_WORDS: {}, SAME_TOP: {}}
    for conversation, (one, other) in pairs.items():
        sources = set(one.response.used), set(other.response.used)
        if any(sources):
            values[SAME_SOURCES][conversation] = len(sources[0] & sources[1]) / len(sources[0] | sources[1])
        values[SAME_WORDS][conversation] = rouge_f1(one.response.text, other.response.text)["ROUGE-L"]
        tops = [{hit.id for hit in turn.hits[:TOP]} for turn in (one, other)]
        if any(tops):
            values[SAME_TOP][conversation] = len(tops[0] & tops[1]) / max(map(len, tops))
    return {measure: found for measure, found in values.items() if found}


def add_measures(run: ConversationMeasures, values: Mapping[str, Mapping[str, float]]) -> ConversationMeasures:
    """The measures of a run with more of them."""
    means = {measure: Measured(bootstrap_interval(found), len(found)) for measure, found in values.items()}
    return replace(run, means={**run.means, **means}, values={**run.values, **values})
