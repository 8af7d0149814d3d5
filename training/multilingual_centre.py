"""What the vectors of multilingual-e5-small have in common, and what sets languages apart.

    python -m training.multilingual_centre

The same sixteen sentences stand in each of seven languages. Their mean, with that of English sentences, is what all
vectors have in common; where the mean of each language lies beside it is no meaning, and is left out of every vector
(Yang et al., EMNLP 2021). Written is the mean, then orthonormal directions, a row each.
"""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from agent.models.embedding.llama_cpp import open_gguf
from agent.models.embedding.multilingual import DIGEST, NAME, convert_to_gguf, find_weights, prepare
from agent.models.learned import MULTILINGUAL_CENTRE
from indexes.ranking.vectors import Vectors
from indexes.text.sentences import split_sentences

HERE = Path(__file__).parent
ENGLISH_SENTENCES = 300
DIGITS = 4


def main() -> None:
    texts = (json.loads(line)["text"] for line in (HERE / "own_documents.jsonl").open(encoding="utf-8"))
    english = [*islice((sentence for text in texts for sentence in split_sentences(text)[2:4]), ENGLISH_SENTENCES)]
    rows = (HERE / "multilingual_sentences.txt").read_text(encoding="utf-8").splitlines()
    languages = [*zip(*(row.split("\t") for row in rows), strict=True)]
    embedder = open_gguf(convert_to_gguf(find_weights()), name=NAME, digest=DIGEST, threads=2)

    def find_mean(sentences: Sequence[str]) -> Vectors:
        return np.asarray(embedder.embed([prepare(sentence) for sentence in sentences]).mean(axis=0))

    means = np.stack([find_mean(sentences) for sentences in languages])
    centre = (find_mean(english) + means.mean(axis=0)) / 2
    _, _, directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    rows_written = np.round(np.vstack([centre, directions[:-1]]).astype(float), DIGITS)
    MULTILINGUAL_CENTRE.write_text(json.dumps(rows_written.tolist()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
