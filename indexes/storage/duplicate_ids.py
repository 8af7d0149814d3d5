"""Which ids of a corpus were there before, in bounded memory however many there are.

An id is known by 64 bits of its hash. A filter of two bits an id, in a table of fixed size, tells most new ids at once;
only what it cannot tell is looked for among all hashes, which lie in sorted runs: the latest in memory, the rest in a
file. Of a hundred million different ids the filter leaves one in ten to be looked for; of a million, none.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

Digests = npt.NDArray[np.uint64]
FILTER_BITS = 29  # of a place in the filter: 2**29 bits are 64 MiB
RUN = 1 << 20  # digests that are sorted into a run of the file: 8 MiB


class SeenIds:
    """The ids met so far, asked block by block. Keeps a file at `path` while it is open, and deletes it then."""

    def __init__(self, path: Path, run: int = RUN, filter_bits: int = FILTER_BITS) -> None:
        self._path, self._run, self._shift = path, run, np.uint64(64 - filter_bits)
        self._filter = np.zeros(1 << (filter_bits - 3), dtype=np.uint8)
        self._latest: list[Digests] = []  # sorted, and in memory
        self._ends = [0]  # of the runs of the file
        self._file = path.open("wb")

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink()

    def add(self, ids: Sequence[str]) -> npt.NDArray[np.bool_]:
        """For each id of a block, whether it was there before: in an earlier block, or earlier in this one."""
        digests, first = np.unique(_digests(ids), return_index=True)
        old = np.ones(len(ids), dtype=np.bool_)
        old[first] = self._known(digests)
        self._keep(digests[~old[first]])
        return old

    def _known(self, digests: Digests) -> npt.NDArray[np.bool_]:
        known = np.ones(len(digests), dtype=np.bool_)
        for places in self._places(digests):
            known &= (self._filter[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)) & 1 == 1
        unsure = digests[known]
        if unsure.size:
            found = np.zeros(len(unsure), dtype=np.bool_)
            for run in self._runs():
                found |= run[np.minimum(run.searchsorted(unsure), len(run) - 1)] == unsure
            known[known] = found
        return known

    def _places(self, digests: Digests) -> tuple[Digests, Digests]:
        return digests >> self._shift, (digests << self._shift) >> self._shift

    def _runs(self) -> Iterator[Digests]:
        """All runs. Those of the file are mapped one at a time, so that what was looked at does not stay in memory."""
        yield from self._latest
        for start, end in pairwise(self._ends):
            yield np.memmap(self._path, dtype=np.uint64, mode="r", offset=8 * start, shape=(end - start,))

    def _keep(self, digests: Digests) -> None:
        for places in self._places(digests):
            bits = np.left_shift(np.uint8(1), (places & np.uint64(7)).astype(np.uint8))
            np.bitwise_or.at(self._filter, places >> np.uint64(3), bits)
        if digests.size:
            self._latest.append(digests)
        if sum(map(len, self._latest)) >= self._run:
            run = np.sort(np.concatenate(self._latest))
            run.tofile(self._file)
            self._file.flush()
            self._ends.append(self._ends[-1] + len(run))
            self._latest.clear()


def _digests(ids: Sequence[str]) -> Digests:
    blake = hashlib.blake2b
    return np.frombuffer(b"".join([blake(id.encode("utf-8", "replace"), digest_size=8).digest() for id in ids]), ">u8")
