"""Sorting more postings than fit in memory: sorted runs on disk, merged slice by slice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.index.part import PartWriter

POSTING_TYPE = np.dtype([("key", "<u8"), ("row", "<i4"), ("count", "u1")])
POSTINGS_PER_RUN = 2**23
"""Postings held in memory before they are sorted and written as a run: 109 MB."""
_NO_POSTINGS = np.zeros(0, dtype=POSTING_TYPE)


class PostingRuns:
    """Collect postings (key, row, count) in the order of their rows and give them back ordered by key, then row.

    Keys spread over all 64-bit numbers. Memory holds about one run, whatever comes; where runs end changes nothing.
    """

    def __init__(self, folder: Path, size: int = POSTINGS_PER_RUN) -> None:
        self.folder, self._size = folder, size
        self._held: list[NDArray[np.void]] = []
        self._count = 0
        self._files: list[Path] = []
        folder.mkdir()

    def add(self, keys: NDArray[np.uint64], rows: Any, counts: Any) -> None:
        """Take postings: a row and a count for each key, or one for all."""
        found = np.empty(len(keys), dtype=POSTING_TYPE)
        found["key"], found["row"], found["count"] = keys, rows, counts
        self._held.append(found)
        self._count += len(found)
        if self._count >= self._size:
            self._flush()

    def _flush(self) -> None:
        run = np.concatenate(self._held or [_NO_POSTINGS])
        self._held, self._count = [], 0
        path = self.folder / f"{len(self._files)}.bin"
        run[np.argsort(run["key"], kind="stable")].tofile(path)
        self._files.append(path)

    def merged(self) -> Iterator[NDArray[np.void]]:
        """Yield all postings in slices of about a run; no key lies in two slices."""
        if self._count or not self._files:
            self._flush()
        runs = [np.memmap(path, dtype=POSTING_TYPE, mode="r") if path.stat().st_size else _NO_POSTINGS for path in self._files]
        borders = [np.uint64(i * 2**64 // len(runs)) for i in range(1, len(runs))]
        cuts = [[0, *(int(np.searchsorted(run["key"], b)) for b in borders), len(run)] for run in runs]
        for i in range(len(runs)):
            part = np.concatenate([run[cut[i] : cut[i + 1]] for run, cut in zip(runs, cuts, strict=True)])
            # runs came in the order of their rows, so a stable sort by key alone keeps the rows of a key rising
            yield part[np.argsort(part["key"], kind="stable")]


def write_posting_lists(out: PartWriter, runs: PostingRuns) -> None:
    """Write postings as arrays: `keys` rising, `ends` of their lists, and `rows` and `counts` of all lists end to end."""
    total = 0
    out.add("ends", np.zeros(1), "<i8")
    for part in runs.merged():
        known, starts = np.unique(part["key"], return_index=True)
        out.add("keys", known, "<u8")
        out.add("ends", total + np.append(starts, len(part))[1:], "<i8")
        out.add("rows", part["row"], "<i4")
        out.add("counts", part["count"], "u1")
        total += len(part)
