"""A million made-up vectors with the statistics of real passages', and real questions to search them with.

Real are the vectors of the passages in `../shared/data` and `examples/`, and of the questions there. A made-up vector
lies near a real one: its difference from it is drawn from a Gaussian with the covariance of the `NEIGHBOURS` real
passages around it, and a share with that of all; it is scaled to length 1 and stored in 16 bits. How far it lies is
fitted, so that among as many made-up vectors as there are real ones the tenth neighbour is as near as among the real.
`describe_likeness` compares what was not fitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from agent.models.registry import open_embedder
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import build_searchable_text
from indexes.ranking.vectors import StoredVectors, Vectors
from schemas.records import Passage

PASSAGE_FILES = ("ikat/2023_train_passages.jsonl", "ikat/2023_test_passages.jsonl", "mtrag_un/passages.jsonl")
QUESTIONS_FILE, REWRITES_FILE = "clapnq/questions.jsonl", "rewrites/rewrites.jsonl"
EXAMPLES = Path(__file__).parent.parent / "examples"
SEED, NEIGHBOURS, SHARE_OF_ALL = 20251122, 32, 0.2
FITTED_NEIGHBOUR = 10
BISECTIONS = 12  # of how far a made-up vector lies
BLOCK = 62_500  # vectors that are made together, in random order


@dataclass(frozen=True, slots=True)
class RealVectors:
    """Of passages and of questions, each of length 1."""

    passages: Vectors
    questions: Vectors


def embed_real_texts(data: Path, kept: Path) -> RealVectors:
    """The vectors of all real passages and questions, kept in a file for the next time."""
    if not kept.exists():
        model = open_embedder("minilm")
        assert model
        passages, questions = (model.embed(list(read(data))) for read in (_read_passages, _read_questions))
        np.savez(kept, passages=passages, questions=questions)
    with np.load(kept) as found:
        return RealVectors(found["passages"], found["questions"])


def _read_passages(data: Path) -> Iterator[str]:
    files = [EXAMPLES / "passages.jsonl", *(data / name for name in PASSAGE_FILES)]
    for _, _, found in find_corpus(files):
        if isinstance(found, Passage):
            yield build_searchable_text(found)
    for line in (data / QUESTIONS_FILE).read_bytes().splitlines():
        asked = msgspec.json.decode(line)
        yield build_searchable_text(Passage(asked["id"], " ".join(asked["sentences"]), asked["title"]))


def _read_questions(data: Path) -> Iterator[str]:
    """Those of ClapNQ, and every fifth of the rewrites: questions that stand alone."""
    for line in (data / QUESTIONS_FILE).read_bytes().splitlines():
        yield msgspec.json.decode(line)["question"]
    for line in (data / REWRITES_FILE).read_bytes().splitlines()[::5]:
        yield msgspec.json.decode(line)["rewrite"]


@dataclass(frozen=True, slots=True)
class Mixture:
    """What made-up vectors are drawn from: a Gaussian around each real vector."""

    centres: Vectors
    differences: Vectors  # of each centre, from it to its neighbours: centres x neighbours x size
    root: Vectors  # of the covariance of all
    distance: float  # what a difference is multiplied by

    def draw(self, random: np.random.Generator, count: int) -> Vectors:
        """So many vectors of length 1, as many around each centre, in random order."""
        size = self.centres.shape[1]
        chosen = random.permutation(np.resize(random.permutation(len(self.centres)), count))
        made = np.sqrt(SHARE_OF_ALL) * random.standard_normal((count, size), dtype=np.float32) @ self.root
        own = np.sqrt((1 - SHARE_OF_ALL) / NEIGHBOURS) * random.standard_normal((count, NEIGHBOURS), dtype=np.float32)
        order = np.argsort(chosen, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(chosen[order])) + 1):
            made[rows] += own[rows] @ self.differences[chosen[rows[0]]]
        return _normalise(self.centres[chosen] + self.distance * made)


def fit_mixture(real: Vectors) -> Mixture:
    """The mixture around real vectors whose made-up ones lie as near to each other as they do."""
    nearest = np.argsort(-(real @ real.T), axis=1, kind="stable")[:, 1 : NEIGHBOURS + 1]
    values, directions = np.linalg.eigh(np.cov(real.T))
    root = (directions * np.sqrt(np.maximum(values, 0))) @ directions.T
    differences = real[nearest] - real[:, None, :]
    wanted = _measure_neighbours(real, FITTED_NEIGHBOUR)
    near, far = 0.0, 2.0
    for _ in range(BISECTIONS):
        distance = (near + far) / 2
        mixture = Mixture(real, differences, root.astype(np.float32), distance)
        made = mixture.draw(np.random.default_rng(SEED), len(real))
        near, far = (distance, far) if _measure_neighbours(made, FITTED_NEIGHBOUR) > wanted else (near, distance)
    return mixture


def write_made_up_vectors(mixture: Mixture, count: int, path: Path) -> None:
    """So many, in 16 bits."""
    random, half = np.random.default_rng(SEED), path.with_suffix(".part")
    with half.open("wb") as file:
        for first in range(0, count, BLOCK):
            file.write(mixture.draw(random, min(BLOCK, count - first)).astype(np.float16).tobytes())
    half.rename(path)


def describe_likeness(real: RealVectors, made: StoredVectors) -> Iterator[tuple[str, float, float]]:
    """What is measured of the real and of as many made-up vectors: its name, and both figures."""
    drawn = np.random.default_rng(SEED).choice(len(made), len(real.passages), replace=False)
    sample = made[np.sort(drawn)].astype(np.float32)
    own, questions = real.passages, real.questions
    for rank in (1, 10, 100):
        name = f"cosine of a passage and its neighbour {rank}, median"
        yield name, _measure_neighbours(own, rank), _measure_neighbours(sample, rank)
    for rank in (1, 10, 100):
        name = f"cosine of a question and its passage {rank}, median"
        yield name, _measure_nearest(questions, own, rank), _measure_nearest(questions, sample, rank)
    for count in (10, 50, 100):
        name = f"variance in the first {count} principal components"
        yield name, _measure_variance(own, count), _measure_variance(sample, count)


def _measure_neighbours(vectors: Vectors, rank: int) -> float:
    cosines = vectors @ vectors.T
    return float(np.median(-np.partition(-cosines, rank, axis=1)[:, rank]))  # it is itself the first


def _measure_nearest(questions: Vectors, vectors: Vectors, rank: int) -> float:
    return float(np.median(-np.partition(-(questions @ vectors.T), rank - 1, axis=1)[:, rank - 1]))


def _measure_variance(vectors: Vectors, count: int) -> float:
    values = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
    return float(values[:count].sum() / values.sum())


def _normalise(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
