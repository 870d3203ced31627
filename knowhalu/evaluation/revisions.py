"""Figures of a finished job of revision: hallucinations before and after, texts that passed, and likeness to references.

Hallucinations of a text are the INCORRECT findings of its verdict, claims and citations (or segments without any). Reported ones
are the judge's. Adjusted ones estimate the true number: of those reported, a share as large as the judge's precision is real, and
its recall is the share of the real ones that it reports (Factored Verification, section 3.4: 2/3 and 1).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import (
    Estimate,
    draw_resamples,
    group_keys,
    group_numbers,
    make_estimate,
    percentile_interval,
    resample_sums,
)
from knowhalu.evaluation.metrics import Floats, safe_ratio
from knowhalu.evaluation.runs import count_errors
from knowhalu.evaluation.similarity import bleu_counts, bleu_from_counts, rouge
from knowhalu.io.outcomes import INPUT_FIELD, RowIndex, parse_revision
from knowhalu.io.samples import read_samples
from knowhalu.results import Failure, Revision, RevisionOutcome, Verdict
from knowhalu.types import META_PAIR, HallucinationKind, Sample

if TYPE_CHECKING:
    from knowhalu.evaluation.bert_score import BertScorer

META_REFERENCE = "reference"
"""Key of the `meta` of a row: the text that its revision should come close to."""
REVISION_FILE_HINT = "Give an output of `knowhalu revise IN -o OUT`."


class JudgeAccuracy(NamedTuple):
    """The precision and recall of a judge's reports of hallucinated claims, measured by people."""

    precision: float
    recall: float

    @property
    def factor(self) -> float:
        """Return the true number of hallucinations for each reported one."""
        return self.precision / self.recall


class RevisedTexts(NamedTuple):
    """What is kept of each revision: its place among the rows, status, texts, and counts (NaN where nothing was judged)."""

    name: str
    status: str
    original: str
    revised: str | None
    errors: tuple[float, float]
    passed: tuple[float, float]


@dataclass(frozen=True)
class RevisionEvaluation:
    """The figures of a file of revisions; `before` and `after` are of the same texts, those with a revised text.

    `unchecked` of these have no judged claim before or after, and count in no number of hallucinations. `likeness` compares with
    references, by "original" and "revised", and "revised" with the "kept" wording of the original.
    """

    path: str
    rows: int
    statuses: dict[str, int]
    failures: dict[str, int]
    unchecked: int
    passed_unchanged: Estimate
    before: dict[str, Estimate]
    after: dict[str, Estimate]
    judge: JudgeAccuracy | None
    references: int
    likeness: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    scorer: str = ""


class _Rows(NamedTuple):
    """The rows that were revised: their index, the keys that make them dependent, and their references by id."""

    row_index: RowIndex
    keys: dict[str, Sequence[Any]]
    references: dict[str, str]


def evaluate_revisions(
    path: Path, *, rows: Path | None = None, judge: JudgeAccuracy | None = None, scorer: "BertScorer | None" = None
) -> RevisionEvaluation:
    """Return the figures of a file of revisions, with 95 % intervals; references and groups are those of `rows`.

    Raises InputError where the file has no revisions, or belongs to other rows.
    """
    known = _read_rows(rows) if rows is not None else None
    texts, failures = [], Counter[str]()
    for outcome in read_revisions(path, known and known.row_index):
        if isinstance(outcome, Failure):
            failures[f"{outcome.stage}: {outcome.reason}"[:160]] += 1
        else:
            texts.append(_summarize(outcome))
    if not texts:
        raise InputError(f"{path}: has no revision to evaluate ({failures.total():,} failures). {REVISION_FILE_HINT}")
    groups = group_numbers([known.keys[t.name] if known else [t.name] for t in texts])
    drawn = draw_resamples(int(groups.max()) + 1)
    figures = _Figures(groups, drawn)
    shown = np.array([t.revised is not None for t in texts])
    errors = np.where(shown[:, None], np.array([t.errors for t in texts]), np.nan)
    errors[np.isnan(errors).any(axis=1)] = np.nan  # the same texts before and after
    passed = np.where(shown[:, None], np.array([t.passed for t in texts]), np.nan)
    unchanged = np.array([float(t.status == "unchanged" and t.passed[0] == 1) for t in texts])
    before, after = (_counts(figures, errors[:, i], passed[:, i], judge) for i in (0, 1))
    references = known.references if known else {}
    return RevisionEvaluation(
        path=str(path), rows=len(texts) + failures.total(), statuses=dict(Counter(t.status for t in texts)),
        failures=dict(failures.most_common()), unchecked=int((shown & np.isnan(errors[:, 0])).sum()),
        passed_unchanged=figures.mean(unchanged), before=before, after=after, judge=judge,
        references=sum(t.name in references and t.revised is not None for t in texts),
        likeness=_likeness(figures, texts, references, scorer), scorer=scorer.name if scorer else "",
    )  # fmt: skip


def read_revisions(path: Path, rows: RowIndex | None = None) -> Iterator[RevisionOutcome]:
    """Yield the revisions and failures of a file; raises InputError for another file, and for revisions of other rows."""
    with path.open("rb") as file:
        if not file.readline().startswith(b'{"run":'):
            raise InputError(f"{path}: holds no revisions. {REVISION_FILE_HINT}")
        for number, line in enumerate(file, 2):
            where = f"{path}, line {number}"
            try:
                outcome = parse_revision(line)
            except InputError as error:
                raise InputError(f"{where}: no revision ({error}). {REVISION_FILE_HINT}") from error
            if rows is not None:
                rows.place(outcome.id, str(json.loads(line).get(INPUT_FIELD, "")), where)
            yield outcome


def _read_rows(path: Path) -> _Rows:
    """Read rows; the reference of one is that of its `meta`, or else the faithful text of its pair."""
    index, keys = RowIndex(path), dict[str, Sequence[Any]]()
    references: dict[str, str] = {}
    pairs: dict[str, str] = {}
    faithful: dict[str, str] = {}
    for sample in read_samples(path):
        index.add(sample)
        keys[sample.id] = group_keys(sample) or [sample.id]
        if (own := sample.meta.get(META_REFERENCE)) is not None:
            references[sample.id] = _reference(own, sample, path)
        elif (pair := sample.meta.get(META_PAIR)) is not None:
            pairs[sample.id] = str(pair)
            if sample.label == "faithful":
                faithful[str(pair)] = sample.response
    references |= {name: faithful[pair] for name, pair in pairs.items() if pair in faithful}
    return _Rows(index, keys, references)


def _reference(value: Any, sample: Sample, path: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{path}, sample {sample.id!r}, field 'meta.{META_REFERENCE}': is no text. Write one, or leave it out.")
    return value


def _summarize(revision: Revision) -> RevisedTexts:
    before, after = revision.before, revision.after
    return RevisedTexts(
        revision.id, revision.status, revision.original, revision.revised, errors=(_errors(before), _errors(after)),
        passed=(float(before.hallucinated is False), np.nan if after is None else float(after.hallucinated is False)),
    )  # fmt: skip


def _errors(verdict: Verdict | None) -> float:
    """Return the number of hallucinations, NaN where no part of the text was judged."""
    judged = verdict is not None and (verdict.segments or verdict.kind is HallucinationKind.OFF_TARGET)
    return float(count_errors(verdict)) if verdict is not None and judged else np.nan


class _Figures:
    """Means and other figures of rows with their intervals, by resampling groups of dependent rows."""

    def __init__(self, groups: NDArray[np.intp], drawn: NDArray[np.uint8]) -> None:
        self.groups, self.drawn = groups, drawn

    def mean(self, values: Floats) -> Estimate:
        """Return the mean of the rows that have a value."""
        known = ~np.isnan(values)
        columns = np.stack([np.where(known, values, 0.0), known.astype(np.float64)], axis=1)
        return self.of_sums(columns, lambda sums: safe_ratio(sums[..., 0], sums[..., 1]))

    def of_sums(self, columns: Floats, figure: Callable[[Floats], Floats]) -> Estimate:
        """Return a figure of the columns' sums over all rows."""
        whole = figure(columns.sum(axis=0))
        if self.drawn.shape[1] < 2:
            return make_estimate(whole)
        return make_estimate(whole, *percentile_interval(figure(resample_sums(columns, self.groups, self.drawn))))


def _counts(figures: _Figures, errors: Floats, passed: Floats, judge: JudgeAccuracy | None) -> dict[str, Estimate]:
    reported = figures.mean(errors)
    scaled = Estimate(*(None if v is None else v * judge.factor for v in reported)) if judge else Estimate(None)
    with_any = figures.mean(np.where(np.isnan(errors), np.nan, errors > 0))
    return {"reported": reported, "adjusted": scaled, "with_any": with_any, "passed": figures.mean(passed)}


def _likeness(
    figures: _Figures, texts: Sequence[RevisedTexts], references: Mapping[str, str], scorer: "BertScorer | None"
) -> dict[str, dict[str, Estimate]]:
    """Compare originals and revised texts with the references, and revised texts with the originals."""
    pairs: dict[str, list[tuple[str, str] | None]] = {
        "original": [(t.original, references[t.name]) if t.revised is not None and t.name in references else None for t in texts],
        "revised": [(t.revised, references[t.name]) if t.revised is not None and t.name in references else None for t in texts],
        "kept": [(t.revised, t.original) if t.revised is not None else None for t in texts],
    }
    return {name: _scores(figures, chosen, scorer) for name, chosen in pairs.items() if any(chosen)}


def _scores(figures: _Figures, pairs: Sequence[tuple[str, str] | None], scorer: "BertScorer | None") -> dict[str, Estimate]:
    wording = [rouge(*pair) if pair else dict.fromkeys(("rouge1", "rouge2", "rougeL"), np.nan) for pair in pairs]
    scores = {name: figures.mean(np.array([w[name] for w in wording])) for name in wording[0]}
    counts = np.array([bleu_counts(*pair) if pair else [0.0] * 10 for pair in pairs])
    scores["bleu4"] = figures.of_sums(counts, bleu_from_counts)
    if scorer is not None:
        f1 = iter(scorer.f1([pair for pair in pairs if pair]))
        scores["bertscore"] = figures.mean(np.array([next(f1) if pair else np.nan for pair in pairs]))
    return scores
