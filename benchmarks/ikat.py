"""iKAT 2023's conversations over the passages whose text is public: `python -m benchmarks ikat --data DIR`."""

import json
from collections.abc import Mapping

from agent.evaluation.ptkb import read_statement_labels
from benchmarks.bed import (
    DEFAULT,
    NO_MODEL,
    SYSTEMS,
    WITH_LABELS,
    WORDS_ONLY,
    AnsweredBed,
    Bed,
    BenchRequest,
    Progress,
    System,
    WantedFile,
    answer_bed,
    check_files,
    choose_evenly,
    choose_systems,
    prepare_bed,
    prepare_folder,
)
from benchmarks.figures import (
    BenchedBed,
    Table,
    keep_turns,
    make_table,
    measure_answers,
    measure_rankings,
    measure_statements,
)
from indexes.storage.files import read_utf8

REPOSITORY = "github.com/irlabamsterdam/iKAT (MIT licence)"
TOPICS = "ikat/2023_dev_topics.json"
PASSAGES = ("ikat/2023_train_passages.jsonl", "ikat/2023_test_passages.jsonl")
LABELS = {"NIST": "ikat/ptkb_rel_nist.dev.qrels", "organisers": "ikat/ptkb_rel_org.dev.qrels"}
WANTED = (
    WantedFile(
        TOPICS,
        "conversations with human rewrites, statements, passages and replies",
        f"{REPOSITORY}, the test topics of 2023: the 16 conversations 9-1, 9-2, 10-1 to 10-3, 11-1, 11-2, 14-1, 14-2, "
        "15-1, 15-2, 17-1 to 17-3, 20-1, 20-2 as one list",
    ),
    *(
        WantedFile(path, "passages whose text is public, a JSON object a line", f"{REPOSITORY}, those of 2023")
        for path in PASSAGES
    ),
    *(
        WantedFile(path, f"personal statements that matter, as the {name} assessors judged", f"{REPOSITORY}, 2023")
        for name, path in LABELS.items()
    ),
)
NO_STATEMENTS = System("no statements", min_probability=1.0)
SYSTEMS_OF_IKAT = (*SYSTEMS, *WITH_LABELS, NO_STATEMENTS)
CHOOSING = (DEFAULT, NO_MODEL, WORDS_ONLY, NO_STATEMENTS)  # whose choice of statements is measured
ANSWERING = (DEFAULT, NO_MODEL, WORDS_ONLY)  # whose answers from the gold passages are, too


def run_ikat(request: BenchRequest, progress: Progress) -> BenchedBed:
    """Every system over the bed, and the tables. Raises `MissingError` naming all files that are not there."""
    check_files(request.data, WANTED)
    systems = choose_systems(SYSTEMS_OF_IKAT, request)
    prepare_folder(request.folder, resume=request.resume, overwrite=request.overwrite)
    bed = _prepare(request, progress)
    found = {system: answer_bed(bed, system, request, progress.turns) for system in systems}
    given = {
        system: answer_bed(bed, system, request, progress.turns, "given") for system in systems if system in ANSWERING
    }
    return BenchedBed(bed, (*_tabulate_found(bed, request, found), _tabulate_given(bed, given)), found)


def _prepare(request: BenchRequest, progress: Progress) -> Bed:
    topics: list[object] = json.loads(read_utf8(request.data / TOPICS))
    passages = [request.data / path for path in PASSAGES]
    chosen = choose_evenly(topics, request.limit)
    return prepare_bed(request.folder, chosen, passages, progress.stages, resume=request.resume)


def _tabulate_found(bed: Bed, request: BenchRequest, found: Mapping[System, AnsweredBed]) -> tuple[Table, ...]:
    turns = len(bed.topics.turn_ids())
    searching = {system: run for system, run in found.items() if system is not NO_STATEMENTS}
    search = make_table("search", bed.about_search(), searching, lambda run: measure_rankings(bed, run))
    labels = {name: keep_turns(read_statement_labels(request.data / path), bed) for name, path in LABELS.items()}
    counts = ", ".join(f"{len(judged)} turns judged by {name}" for name, judged in labels.items())
    choosing = {system: run for system, run in found.items() if system in CHOOSING}
    own = f"all {turns} turns by the topics' own choice"
    about = f"Personal statements: {counts}, {own} (macro F1 and nDCG@3 of what was chosen)."
    statements = make_table("statements", about, choosing, lambda run: measure_statements(bed, labels, run))
    about = f"Answers to all {turns} turns from what was found, against the canonical replies."
    answers = make_table("answers", about, found, lambda run: measure_answers(bed, run, bed.topics.turn_ids()))
    return search, statements, answers


def _tabulate_given(bed: Bed, given: Mapping[System, AnsweredBed]) -> Table:
    about = f"Answers to the {len(bed.gold)} turns from their gold passages, against the canonical replies."
    return make_table("given", about, given, lambda run: measure_answers(bed, run, tuple(bed.gold)))
