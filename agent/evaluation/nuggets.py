"""`convagent eval nuggets`: how much of what a good answer should hold a run's answers hold, as a judge has it.

Nuggets are scored as TREC RAG has it (Pradeep et al., 2024, arXiv:2411.09607) and the Nuggetizer computes it: strict
scores count what is said in full alone, the others what is said in part as a half; `weighted` counts a nugget that is
merely okay as half a vital one.

Its files are JSON lines, one query each (`JudgedAnswer`); assignments add the answer that they are about, and how far
it says each nugget. source: README and `nuggetizer.core.types` of nuggetizer 0.0.5 (castorini/nuggetizer), where a
label that could not be made is "failed".

A judge is a model that is asked about ten nuggets at a time, as by the Nuggetizer, or the bundled embedding model as a
rough proxy for one: it knows what an answer is about, and not whether it says the contrary (docs/evaluation.md). The
cut-offs between its verdicts are from half of ClapNQ's questions (`python -m benchmarks.rough_judges`). Where a model
gives no verdict (too much to read, or no reply of the wanted form) there is none. What it replied is in the cache of
replies, so whoever is killed and begins again goes on.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

import prompts
from agent.evaluation.scores import Scores, check_turns_shared, read_run_file
from agent.models.protocol import Conversation, LanguageModel, PromptTooLongError, Task
from agent.models.registry import MODEL_CHOICES, open_embedder, open_model
from agent.tracks.files import read_topics
from agent.tracks.lenient_reading import IS_ID, Oddities, decode_leniently, report_oddities
from indexes.index_vectors import StageProgress, cache_vectors
from indexes.ranking.vectors import Embed
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import check_writable, read_utf8, write_atomically
from indexes.text.response_length import count_whitespace_words
from indexes.text.units import split_units
from schemas.errors import InvalidInputError, ModelReplyError, UsageError, format_count, list_with_limit
from schemas.records import Message, Passage
from schemas.wire import Data, decode

log = logging.getLogger("convagent")
Label = Literal["support", "partial_support", "not_support"]  # the last is that of saying nothing
VERDICTS: tuple[Label, ...] = get_args(Label)
REMEDY = 'Nuggets are lines of {"query": ..., "qid": ..., "nuggets": [{"text": ..., "importance": ...}]}.'
Importance = Literal["vital", "okay", "failed"] | None  # None where nobody said: iKAT has no importance
Verdict = Label | Literal["failed"] | None  # None where nobody judged
NO_VERDICT = (None, "failed")
MEASURES = ("vital", "strict vital", "weighted", "strict weighted", "all", "strict all")
STRICT: Mapping[Verdict, float] = {"support": 1.0}
LENIENT: Mapping[Verdict, float] = {"support": 1.0, "partial_support": 0.5}
WEIGHTS: Mapping[str, Mapping[Importance, float]] = {
    "vital": {"vital": 1.0},
    "weighted": {"vital": 1.0, "okay": 0.5},
    "all": dict.fromkeys(("vital", "okay", "failed", None), 1.0),
}


class Nugget(Struct, frozen=True):
    """What an answer should hold, and the verdict of a judge on one answer."""

    text: str
    importance: Importance = None
    verdict: Verdict = msgspec.field(name="assignment", default=None)


class JudgedAnswer(Struct, frozen=True):
    """One answer of a run with what it is judged by; without run and text, the nuggets of a turn. A line of a file."""

    turn_id: Annotated[str, Meta(extra=IS_ID)] = msgspec.field(name="qid")
    nuggets: tuple[Nugget, ...]
    query: str = ""
    text: str = msgspec.field(name="answer_text", default="")
    response_length: int = 0  # words of the text, where it is written
    run: str = msgspec.field(name="run_id", default="")

    @property
    def verdicts(self) -> dict[str, Verdict]:
        return {nugget.text: nugget.verdict for nugget in self.nuggets}


def score_nuggets(nuggets: Sequence[Nugget]) -> dict[str, float]:
    """The scores of one answer. Where no nugget has an importance, those of all nuggets alone.

    As the Nuggetizer has it, a score over no nugget at all is 0, and a nugget without assignment is not in the answer.
    """
    scores = {}
    for name, weigh in WEIGHTS.items() if any(nugget.importance for nugget in nuggets) else [("all", WEIGHTS["all"])]:
        weights = [weigh.get(nugget.importance, 0.0) for nugget in nuggets]
        for strictness, worth in (("", LENIENT), ("strict ", STRICT)):
            found = sum(w * worth.get(nugget.verdict, 0.0) for nugget, w in zip(nuggets, weights, strict=True))
            scores[strictness + name] = found / sum(weights) if any(weights) else 0.0
    return scores


def read_nuggets(path: Path) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each turn: of the Nuggetizer (JSON lines), or of iKAT (one JSON object).

    A file of one run's assignments is read, too; its nuggets have them. Raises `InvalidInputError` for any other file.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        ikat: dict[str, Any] = {}
        with suppress(msgspec.DecodeError):  # which lines are not, but one alone
            ikat = decode(data, dict[str, Any])
        if ikat and "nuggets" not in ikat:
            found = tuple(JudgedAnswer(id, tuple(_read_ikat_turn(id, each))) for id, each in ikat.items())
        else:
            found = decode_nuggets(data, oddities)
        if not found:
            raise InvalidInputError("holds no nuggets")
        if len({nuggets.turn_id for nuggets in found}) < len(found):
            remedy = "Assignments of several runs are read with --judge FILE."
            raise InvalidInputError("has nuggets for one turn twice", remedy=remedy)
    return found


def _read_ikat_turn(turn_id: str, given: Any) -> Iterator[Nugget]:
    """Gold nuggets as the organisers of iKAT give them: one JSON object, by turn, then by the nugget's number.

        {"9-1_1": {"1": {"text": "Rice bread keeps for two days."}, "2": "It can be frozen."}}

    The two forms of a nugget, and a list in place of the inner object, are all read.

    source: `matching/NtN.py` and `matching/NtR.py` of irlabamsterdam/CONE-RAG (Abbasiantaeb et al., 2025,
    arXiv:2503.09902), which read them so; a topic and a turn are joined as in iKAT 2024.
    """
    if not isinstance(given, dict | list):
        raise InvalidInputError("is no list of nuggets", where=f"$[{turn_id!r}]")
    for key, nugget in given.items() if isinstance(given, dict) else enumerate(given):
        text = nugget.get("text") if isinstance(nugget, dict) else nugget
        if not isinstance(text, str):
            raise InvalidInputError("is no nugget: it has no text", where=f"$[{turn_id!r}][{key!r}]")
        yield Nugget(text)


def decode_nuggets(data: Data, oddities: Oddities) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each line with their assignments. Raises `InvalidInputError` for a line that is none."""
    found = []
    for number, line in enumerate(bytes(data).splitlines(), start=1):
        if line.strip():
            try:
                found.append(decode_leniently(line, JudgedAnswer, f"line {number} $", oddities))
            except msgspec.DecodeError as error:
                what = f"is no line of nuggets ({error})"
                raise InvalidInputError(what, where=f"line {number}", remedy=REMEDY) from error
    return tuple(found)


SIMILARITY = "minilm"
ROUGH = "its verdicts are a rough proxy: they go by what a text is about, and miss a changed number or a negation"
SMALL = "its verdicts are a rough proxy: a model of less than a billion parameters guesses more than it judges"
BATCH = 10  # nuggets a prompt
REPLY_TOKENS, VERDICT_TOKENS = 16, 12  # around the verdicts, and of each
CUT_OFFS = 0.75, 0.65  # the cosines from which on a verdict is given; below both it is the last

FindVerdicts = Callable[[str, str, Sequence[str]], list[Verdict]]  # of a query, an answer, and nuggets


def judge_runs(
    runs: Sequence[Path],
    nuggets: Path,
    topics: Path | None,
    judge: str,
    output: Path | None,
    progress: StageProgress,
    *,
    overwrite: bool,
) -> tuple[list[Scores], Path | None]:
    """Judge the answers of each run by a model, or take the verdicts of the file that `judge` names, and score them.

    `topics` say what was asked, for nuggets that do not. Returns the scores, and where the verdicts are, if they were
    made. Raises before any work for what can be known to be wrong by then.
    """
    answers = _pair_answers(runs, read_nuggets(nuggets), _read_queries(topics))
    if Path(judge).is_file() and not judge.endswith(".gguf"):
        output, judged = None, _take_verdicts(answers, Path(judge))
    else:
        stem = runs[0].name.removesuffix(".jsonl").removesuffix(".json")
        output = output or Path(f"{stem}.nuggets.jsonl")
        check_writable(output, overwrite)
        find_verdicts, rough = open_nugget_judge(judge)
        if rough:
            log.warning("%s: %s", judge, rough)
        judged = []
        with progress("judging", len(answers)) as tick:
            for answer in answers:
                judged.append(judge_answer(answer, find_verdicts))
                tick(len(judged))
        measured = (replace(each, response_length=count_whitespace_words(each.text)) for each in judged)
        write_atomically(output, (msgspec.json.encode(each) + b"\n" for each in measured))  # no label is null
    if missing := sum(nugget.verdict in NO_VERDICT for answer in judged for nugget in answer.nuggets):
        log.warning("%s: without %s, which count as not in the answer", judge, format_count(missing, "verdict"))
    return [_score(run.name, judged) for run in runs], output


def _pair_answers(
    runs: Sequence[Path], nuggets: Sequence[JudgedAnswer], queries: Mapping[str, str]
) -> list[JudgedAnswer]:
    """Each answer of each run with what it is judged by; an answer that a run lacks is empty."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs are called {names[0]}", remedy="Verdicts are kept by the name of the run's file.")
    paired = []
    for run in runs:
        _, turns = read_run_file(run)
        texts = {id: turn.responses[0].text or "" for id, turn in turns.items()}
        check_turns_shared(run, texts, {found.turn_id: {} for found in nuggets})
        for found in nuggets:
            unjudged = tuple(replace(nugget, verdict=None) for nugget in found.nuggets)
            query, text = found.query or queries.get(found.turn_id, ""), texts.get(found.turn_id, "")
            paired.append(replace(found, nuggets=unjudged, run=run.name, query=query, text=text))
    return paired


def _read_queries(path: Path | None) -> Mapping[str, str]:
    """What was asked at each turn, as it stands alone where the topics say so."""
    if path is None:
        return {}
    topics = read_topics(path)
    asked = {turn.id: turn.utterance for topic in topics.topics for turn in topic.turns}
    return asked | {id: labels.human_rewrite for id, labels in topics.labels.items() if labels.human_rewrite}


def _take_verdicts(answers: Sequence[JudgedAnswer], path: Path) -> list[JudgedAnswer]:
    """The verdicts of a file on these answers. Raises `InvalidInputError` where it has none of them."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        given = decode_nuggets(data, oddities)
        runs = {verdict.run for verdict in given}
        lone = len(runs) == len({answer.run for answer in answers}) == 1  # then its name there does not matter
        found = {(answers[0].run if lone else verdict.run, verdict.turn_id): verdict for verdict in given}
        taken = [_take(found.get((answer.run, answer.turn_id), answer), answer) for answer in answers]
        if all(verdict in NO_VERDICT for answer in taken for verdict in answer.verdicts.values()):
            others = ", ".join(list_with_limit(sorted(filter(None, runs)), 5)) or "none that it names"
            remedy = f"It is about these runs: {others}. --judge MODEL makes verdicts."
            raise InvalidInputError("has no verdicts on these runs", remedy=remedy)
    return taken


def _take(verdict: JudgedAnswer, answer: JudgedAnswer) -> JudgedAnswer:
    """The verdict on an answer. Raises `InvalidInputError` where it is on another one."""
    what = ""
    if verdict.text and verdict.text.split() != answer.text.split():
        what = f"is about another answer than the one of {answer.run}"
    elif verdict.verdicts.keys() != answer.verdicts.keys():
        what = "judges by other nuggets than those that are given"
    if what:
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    return replace(verdict, run=answer.run, text=answer.text)


def _score(run: str, judged: Sequence[JudgedAnswer]) -> Scores:
    own = [answer for answer in judged if answer.run == run]
    scores = {answer.turn_id: score_nuggets(answer.nuggets) for answer in own}
    return Scores(run, scores, sum(not answer.text for answer in own))


def judge_answer(answer: JudgedAnswer, find_verdicts: FindVerdicts) -> JudgedAnswer:
    """The answer with its verdicts; one without a word says nothing, and nobody is asked."""
    texts = [nugget.text for nugget in answer.nuggets]
    is_asked = answer.text.strip() and texts
    verdicts = find_verdicts(answer.query, answer.text, texts) if is_asked else [VERDICTS[-1]] * len(texts)
    pairs = zip(answer.nuggets, verdicts, strict=True)
    return replace(answer, nuggets=tuple(replace(nugget, verdict=verdict) for nugget, verdict in pairs))


def open_nugget_judge(name: str) -> tuple[FindVerdicts, str]:
    """A judge by its name, and why its verdicts are a rough proxy for a judge's, or "".

    What it replies is cached. Raises what `open_model` does, and `UsageError` for none.
    """
    if name == SIMILARITY and (embedder := open_embedder(name)):
        return partial(_compare, cache_vectors(embedder).embed), ROUGH
    llm = open_model(name, cache=Cache(find_cache_directory() / "replies.sqlite"))
    if not llm.generates_text:
        raise UsageError("a judge has to be a model", remedy=f"Models: {MODEL_CHOICES}.")
    return partial(_ask_all, llm), SMALL if llm.runs_here and not llm.writes_answers else ""


def _ask_all(llm: LanguageModel, query: str, answer: str, texts: Sequence[str]) -> list[Verdict]:
    """A verdict on each text, None where there is none: too much to read, or no such reply."""
    verdicts: list[Verdict] = []
    conversation = Conversation("You check answers.", (Message("user", ""),))
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        prompt = prompts.render("assign", query=query, answer=answer, nuggets=batch)
        tokens = REPLY_TOKENS + VERDICT_TOKENS * len(batch)
        task = Task("assign", prompt.instruction, prompt.opening, max_tokens=tokens)
        labels: list[Verdict] = [None] * len(batch)
        with suppress(ModelReplyError, PromptTooLongError):
            labels = llm.ask(conversation, task, _reply_type(len(batch))).labels
        verdicts += labels
    return verdicts


@cache
def _reply_type(count: int) -> Any:
    """What a model replies: as many labels as there are nuggets."""
    labels: Any = Annotated[list[Label], Meta(min_length=count, max_length=count)]
    return msgspec.defstruct("Labels", [("labels", labels)])


def _compare(embed: Embed, _query: str, answer: str, texts: Sequence[str]) -> list[Verdict]:
    """A verdict on each text, by how near it is to something in the answer."""
    cosines = measure_similarity(embed, answer, texts)
    return [VERDICTS[sum(cosine < least for least in CUT_OFFS)] for cosine in cosines]


def measure_similarity(embed: Embed, answer: str, texts: Sequence[str]) -> list[float]:
    """The cosine of each text with what is nearest to it in the answer: a sentence, two of them, or all."""
    sentences = [unit.text for unit in split_units(Passage("", answer))]
    pairs = (" ".join(sentences[start : start + 2]) for start in range(len(sentences) - 1))
    windows = list(dict.fromkeys((*sentences, *pairs, answer)))
    return [float(cosine) for cosine in (embed(texts) @ embed(windows).T).max(axis=1)]
