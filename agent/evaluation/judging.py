"""`convagent eval nuggets`: from runs and nuggets to verdicts and scores.

A judge is a model that is asked, or the bundled embedding model as a rough proxy for one. A model is asked about ten
nuggets at a time, as by the Nuggetizer. Where it gives no verdict (too much to read, or no reply of the wanted form)
there is none. The embedding model knows what an answer is about, and not whether it says the contrary;
docs/evaluation.md has what was measured. The cut-offs between its verdicts are from half of ClapNQ's questions
(`python -m benchmarks.rough_judges`).

Whoever is killed and begins again goes on: what a model replied is in the cache of replies.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

import prompts
from agent.evaluation.nuggets import (
    NO_VERDICT,
    JudgedAnswer,
    Verdict,
    decode_nuggets,
    encode_nuggets,
    read_nuggets,
    score_nuggets,
)
from agent.evaluation.scores import Scores, check_turns_shared, read_run_file
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import MODEL_CHOICES, open_model
from agent.tracks.oddities import report_oddities
from agent.tracks.topic_files import read_topics
from indexes.ranking.vectors import Embed
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import check_writable, read_utf8, write_atomically
from indexes.text.units import split_units
from schemas.errors import InvalidInputError, ModelReplyError, UsageError, format_count, list_with_limit
from schemas.progress import StageProgress
from schemas.records import Message, Passage

log = logging.getLogger("convagent")
SIMILARITY = "minilm"
ROUGH = "its verdicts are a rough proxy: they go by what a text is about, and miss a changed number or a negation"
SMALL = "its verdicts are a rough proxy: a model of less than a billion parameters guesses more than it judges"
BATCH = 10  # nuggets a prompt
REPLY_TOKENS, VERDICT_TOKENS = 16, 12  # around the verdicts, and of each
VERDICTS: tuple[Verdict, ...] = ("support", "partial_support", "not_support")  # the last is that of saying nothing
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
        write_atomically(output, map(encode_nuggets, judged))
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
        texts = {turn.turn_id: (turn.responses[0].text or "") if turn.responses else "" for turn in turns}
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
        found = {(not lone and verdict.run, verdict.turn_id): verdict for verdict in given}
        taken = [_take(found.get((not lone and answer.run, answer.turn_id)), answer) for answer in answers]
        if all(verdict in NO_VERDICT for answer in taken for verdict in answer.verdicts.values()):
            others = ", ".join(list_with_limit(sorted(filter(None, runs)), 5)) or "none that it names"
            remedy = f"It is about these runs: {others}. --judge MODEL makes verdicts."
            raise InvalidInputError("has no verdicts on these runs", remedy=remedy)
    return taken


def _take(verdict: JudgedAnswer | None, answer: JudgedAnswer) -> JudgedAnswer:
    """The verdict, or the answer without one. Raises `InvalidInputError` where it is on another answer."""
    if verdict is None:
        return answer
    if verdict.text and verdict.text.split() != answer.text.split():
        what = f"is about another answer than the one of {answer.run}"
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    if verdict.verdicts.keys() != answer.verdicts.keys():
        what = "judges by other nuggets than those that are given"
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
    if name == SIMILARITY:
        return _open_similarity(), ROUGH
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
        try:
            fits = llm.fits(conversation, task)
            verdicts += llm.ask(conversation, task, _reply_type(len(batch))).labels if fits else [None] * len(batch)
        except ModelReplyError:
            verdicts += [None] * len(batch)
    return verdicts


@cache
def _reply_type(count: int) -> Any:
    """What a model replies: as many labels as there are nuggets."""
    label = Literal["support", "partial_support", "not_support"]
    labels: Any = Annotated[list[label], Meta(min_length=count, max_length=count)]
    return msgspec.defstruct("Labels", [("labels", labels)])


def _open_similarity() -> FindVerdicts:
    from agent.models.registry import open_embedder
    from indexes.index_vectors import cache_vectors

    embedder = open_embedder(SIMILARITY)
    assert embedder is not None  # a name that is not `none` is opened or an error
    embed = cache_vectors(embedder).embed

    def find_verdicts(_query: str, answer: str, texts: Sequence[str]) -> list[Verdict]:
        cosines = measure_similarity(embed, answer, texts)
        return [VERDICTS[sum(cosine < least for least in CUT_OFFS)] for cosine in cosines]

    return find_verdicts


def measure_similarity(embed: Embed, answer: str, texts: Sequence[str]) -> list[float]:
    """The cosine of each text with what is nearest to it in the answer: a sentence, two of them, or all."""
    sentences = [unit.text for unit in split_units(Passage("", answer))]
    pairs = (" ".join(sentences[start : start + 2]) for start in range(len(sentences) - 1))
    windows = list(dict.fromkeys((*sentences, *pairs, answer)))
    return [float(cosine) for cosine in (embed(texts) @ embed(windows).T).max(axis=1)]
