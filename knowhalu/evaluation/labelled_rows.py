"""The labelled rows of a comparison: gold labels, groups of dependent rows, and a limited selection of them."""

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import SEED, group_keys, group_numbers
from knowhalu.evaluation.metrics import Flags
from knowhalu.io.outcomes import RowIndex
from knowhalu.io.output_files import write_text
from knowhalu.io.samples import hash_id, hash_sample, read_samples
from knowhalu.types import META_SET, META_SPANS, META_TYPE, Sample

LABELS_HINT = 'Give every row a label, "faithful" or "hallucinated", or check rows without labels by knowhalu detect.'
Spans = Sequence[tuple[int, int]]


class RowTraits(NamedTuple):
    """The traits of a row: `meta.type` and `meta.set`, where it has them, the words of its response, and its gold kind."""

    type: str | None
    set: str | None
    words: int
    kind: str | None = None


def row_traits(sample: Sample) -> RowTraits:
    """Return the traits of a row."""
    named = (sample.meta.get(name) for name in (META_TYPE, META_SET))
    kind, group = (str(value) if isinstance(value, str | int) and str(value).strip() else None for value in named)
    return RowTraits(kind, group, len(sample.response.split()), sample.kind)


class LabelledRows(NamedTuple):
    """The rows of a file: their index, gold labels (true: hallucinated), group numbers and further columns, in their order.

    `labelled` tells which rows have a gold label. `contents` maps the hash of a row's content to its id. `bare` counts the rows
    with neither documents nor knowledge. `spans` are the gold spans of each row, None where they are not known.
    """

    row_index: RowIndex
    gold: Flags
    labelled: Flags
    groups: NDArray[np.intp]
    contents: dict[str, str]
    bare: int
    spans: tuple[Spans | None, ...] = ()
    traits: tuple[RowTraits, ...] = ()

    @property
    def path(self) -> Path:
        """Return the file of the rows."""
        return self.row_index.path

    @property
    def places(self) -> dict[bytes, int]:
        """Return the place of every row by the hash of its id."""
        return self.row_index.places

    @property
    def missing(self) -> str | None:
        """Return the label that no row has, if there is one."""
        return None if self.gold.any() and not self.gold.all() else "faithful" if self.gold.all() else "hallucinated"


def read_labelled_rows(path: Path, *, require_labels: bool = True) -> LabelledRows:
    """Read and validate all rows; raises InputError at the first that cannot be used or lacks a required label.

    Gold spans are read only where labels are required.
    """
    index = RowIndex(path)
    labels: list[str | None] = []
    contents: dict[str, str] = {}
    spans: list[Spans | None] = []
    traits: list[RowTraits] = []
    bare, has_spans = 0, False

    def keys(sample: Sample) -> list[Hashable]:
        nonlocal bare, has_spans
        bare += not sample.documents and not sample.knowledge
        has_spans |= META_SPANS in sample.meta
        if require_labels and sample.label is None:
            raise InputError(f"{path}, sample {sample.id!r}: has no label to compare with. {LABELS_HINT}")
        index.add(sample)
        labels.append(sample.label)
        contents[hash_sample(sample)] = sample.id
        spans.append(gold_spans(sample, str(path)) if require_labels else None)
        traits.append(row_traits(sample))
        return group_keys(sample)

    groups = group_numbers(keys(sample) for sample in read_samples(path))
    gold = np.array([label == "hallucinated" for label in labels], dtype=np.bool_)
    labelled = np.array([label is not None for label in labels], dtype=np.bool_)
    known = tuple(spans) if has_spans else (None,) * len(spans)
    return LabelledRows(index, gold, labelled, groups, contents, bare, known, tuple(traits))


def limit_rows(rows: LabelledRows, limit: int | None, folder: Path) -> LabelledRows:
    """Return at most `limit` rows, written to a file: group by group in a fixed random order, so a higher limit only adds rows.

    Raises InputError where that file is the input, or has lines that are not rows of it.
    """
    if limit is None or limit >= len(rows.gold):
        return rows
    rank = np.random.default_rng(SEED).permutation(int(rows.groups.max()) + 1)[rows.groups]
    chosen = set(np.argsort(rank, kind="stable")[:limit].tolist())
    path = folder / "input" / "rows.jsonl"
    _refuse_other_rows(path, rows.path)
    samples = (sample for place, sample in enumerate(read_samples(rows.path)) if place in chosen)
    return read_labelled_rows(write_samples(samples, path))


def write_samples(samples: Iterable[Sample], path: Path) -> Path:
    """Write samples as rows for `read_samples`, all or none; return the path."""
    write_text(path, map(_line, samples))
    return path


def _line(sample: Sample) -> str:
    return f"{sample.model_dump_json(exclude_none=True)}\n"


def _refuse_other_rows(path: Path, input: Path) -> None:
    """Raise InputError where the file is the input, or has lines that are not rows of the input."""
    if path.resolve() == input.resolve():
        raise InputError(
            f"{path}: is the input, of which --limit would keep only some rows. Nothing was changed. Give another folder."
        )
    if not path.exists():
        return
    expected = {hash_id(_line(sample)) for sample in read_samples(input)}
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        if any(hash_id(line) not in expected for line in file):
            raise InputError(f"{path}: has rows that are not in {input}. Nothing was changed. Give another folder, or delete it.")


def gold_spans(sample: Sample, place: str) -> list[tuple[int, int]] | None:
    """Return the gold spans of a sample, None where they are not known; raises InputError for invalid spans.

    A faithful sample without spans has an empty list.
    """
    value = sample.meta.get(META_SPANS)
    if value is None:
        return [] if sample.label == "faithful" else None
    if not isinstance(value, list) or not all(_is_span(v, len(sample.response)) for v in value):
        raise InputError(
            f"{place}, sample {sample.id!r}, field 'meta.{META_SPANS}': not spans of its {len(sample.response)} characters. "
            "Write [[start, end], ...], counted in characters from 0, or give the field another name."
        )
    return merge_spans((start, end) for start, end in value)


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort spans and join those that touch; empty ones are left out."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(s for s in spans if s[0] < s[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _is_span(value: Any, length: int) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(type(v) is int for v in value)
    return is_pair and 0 <= value[0] <= value[1] <= length
