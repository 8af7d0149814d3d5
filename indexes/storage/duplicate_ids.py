"""Finding duplicate ids in a corpus of any size, in bounded memory.

An id is represented by a digest, 64 bits of its hash. A Bloom filter of fixed size, with two bits for each id,
recognises most new ids at once. Only those that it does not are searched for among all digests, which are stored in
sorted runs: the latest in memory, the others in a file. Of a hundred million different ids, one in ten is searched for;
of a million, none.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

Digests = npt.NDArray[np.uint64]
FILTER_BITS = 29  # the filter has 2**29 bits: 64 MiB
RUN_DIGESTS = 1 << 20  # in a run of the file: 8 MiB


class SeenIds:
    """The ids recorded so far. Uses a file at `path` while it is open, and deletes it at the end."""

    def __init__(self, path: Path, run: int = RUN_DIGESTS, filter_bits: int = FILTER_BITS) -> None:
        self._path, self._run, self._shift = path, run, np.uint64(64 - filter_bits)
        self._filter = np.zeros(1 << (filter_bits - 3), dtype=np.uint8)
        self._latest: list[Digests] = []  # the runs in memory
        self._ends = [0]  # of the runs in the file
        self._file = path.open("wb")

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink()

    def record_ids(self, ids: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Record a block of ids. For each, whether it was there before: in an earlier block, or earlier in this one."""
        digests, first = np.unique(_hash_ids(ids), return_index=True)
        is_duplicate = np.ones(len(ids), dtype=np.bool_)
        is_duplicate[first] = self._find_recorded(digests)
        self._record_digests(digests[~is_duplicate[first]])
        return is_duplicate

    def _find_recorded(self, digests: Digests) -> npt.NDArray[np.bool_]:
        recorded = self._match_filter(digests)
        unsure = digests[recorded]
        if unsure.size:
            found = np.zeros(len(unsure), dtype=np.bool_)
            for run in self._read_runs():
                found |= run[np.minimum(run.searchsorted(unsure), len(run) - 1)] == unsure
            recorded[recorded] = found
        return recorded

    def _match_filter(self, digests: Digests) -> npt.NDArray[np.bool_]:
        """False for digests that are certainly new."""
        matches = np.ones(len(digests), dtype=np.bool_)
        for places in self._locate_bits(digests):
            matches &= (self._filter[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)) & 1 == 1
        return matches

    def _locate_bits(self, digests: Digests) -> tuple[Digests, Digests]:
        """The two bits of each digest in the filter."""
        return digests >> self._shift, (digests << self._shift) >> self._shift

    def _read_runs(self) -> Iterator[Digests]:
        """All runs. Those of the file are mapped one at a time, so that they do not stay in memory."""
        yield from self._latest
        for start, end in pairwise(self._ends):
            yield np.memmap(self._path, dtype=np.uint64, mode="r", offset=8 * start, shape=(end - start,))

    def _record_digests(self, digests: Digests) -> None:
        for places in self._locate_bits(digests):
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


def _hash_ids(ids: Sequence[str]) -> Digests:
    blake = hashlib.blake2b
    return np.frombuffer(b"".join([blake(id.encode("utf-8", "replace"), digest_size=8).digest() for id in ids]), ">u8")
