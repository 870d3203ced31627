"""Comparisons that were made before, read back from their folders: who made them by which settings, and their figures."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Predictions
from knowhalu.io.records import hash_id, parse_outcome
from knowhalu.methods.common.verdict import (
    deciding_segment,
    error_relation,
    inconclusive_reason,
    is_hallucinated,
    resolve_inconclusive,
    text_probability,
)
from knowhalu.registry import METHODS, method_card
from knowhalu.results import Segment, Verdict
from knowhalu.types import Judgment, KnowledgeForm, Task

LENGTH_MATCHED = "length-matched"
"""The subset that stands beside figures of sets which length gives away."""
PAST_RUN_HINT = "Run `knowhalu compare` again, or name another folder"


class PastResult(NamedTuple):
    """What one method got in an earlier comparison; `maker` is "encoder", "llm:MODEL", or "rule" where nobody thinks.

    `spec` writes it as `knowhalu compare` takes it; it is empty for a rule, which takes part by itself. `settings` are those that
    decide the result. A result that is not `whole` is that of the length-matched rows alone, which its maker says too.
    """

    name: str
    method: str
    maker: str
    spec: str
    settings: dict[str, Any]
    rows: int
    figures: dict[str, Estimate]
    seconds: float | None
    outcomes: Path
    whole: bool = True


class PastRun(NamedTuple):
    """An earlier comparison: its folder, the file of its rows, and what each method got."""

    folder: Path
    input: Path
    results: tuple[PastResult, ...]


def read_past_run(folder: Path) -> PastRun:
    """Read a comparison's folder; raises InputError naming the file where it is none."""
    path = folder / "comparison.json"
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        whole = [_result(folder, result) for result in fields["results"] if result["method"] in METHODS]
        parts = {s["name"]: {r["name"]: r for r in s["results"]} for s in fields.get("subsets", ())}
        matched = [_part(r, parts[LENGTH_MATCHED][r.name]) for r in whole if r.name in parts.get(LENGTH_MATCHED, {})]
        return PastRun(folder, _input(folder, fields["input"]), (*whole, *matched))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}). {PAST_RUN_HINT}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{path}: not a comparison of this version ({type(error).__name__}: {error}). {PAST_RUN_HINT}."
        ) from error


def metrics_by_form(run: PastRun, result: PastResult, form: KnowledgeForm) -> dict[str, Estimate] | None:
    """Return what KnowHalu gets by one form of knowledge alone, from the judgments that a run has kept.

    None where the run has not judged every segment by this form. Raises InputError where the rows of the run are gone, or others.
    """
    rows = read_labelled_rows(run.input)
    places, verdicts = [], []
    for verdict in _verdicts(result.outcomes):
        alone = verdict_by_form(verdict, form)
        if hash_id(verdict.id) not in rows.places:
            raise InputError(f"{result.outcomes}: sample {verdict.id!r} is not among the rows of {run.input}. {PAST_RUN_HINT}.")
        if alone is None:
            return None
        places.append(rows.places[hash_id(verdict.id)])
        verdicts.append(alone)
    return metrics_with_intervals(
        _predictions(rows, places, verdicts), rows.groups[places], draw_resamples(int(rows.groups.max()) + 1)
    )


def verdict_by_form(verdict: Verdict, form: KnowledgeForm) -> Verdict | None:
    """Return the verdict that one form of knowledge alone leads to; None where a segment was not judged by it."""
    if not verdict.segments:
        return verdict
    judged = [_judgment_by_form(s, form) for s in verdict.segments]
    segments = [_single_form_segment(s, j, verdict.task) for s, j in zip(verdict.segments, judged, strict=True) if j is not None]
    if len(segments) < len(judged):
        return None
    worst = deciding_segment(segments)
    said = {"label": worst.label, "hallucinated": is_hallucinated(worst.label), "probability": text_probability(segments),
            "inconclusive_reason": worst.inconclusive_reason, "relation": worst.relation}  # fmt: skip
    return verdict.model_copy(update={**said, "segments": tuple(segments)})


def _single_form_segment(segment: Segment, judgment: Judgment, task: Task) -> Segment:
    label = resolve_inconclusive(judgment.label, task)
    return segment.model_copy(
        update={
            "base": judgment,
            "supplement": None,
            "label": label,
            "probability": 1 - judgment.p_supported,
            "inconclusive_reason": inconclusive_reason(label, judgment),
            "relation": error_relation(label, judgment, segment.findings),
        }
    )


def _judgment_by_form(segment: Segment, form: KnowledgeForm) -> Judgment | None:
    return next((j for j in (segment.base, segment.supplement) if j is not None and j.form is form), None)


def _verdicts(path: Path) -> Iterator[Verdict]:
    with path.open(encoding="utf-8") as lines:
        next(lines, None)
        for number, line in enumerate(lines, 2):
            try:
                outcome = parse_outcome(line)
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}. {PAST_RUN_HINT}.") from error
            if isinstance(outcome, Verdict):
                yield outcome


def _predictions(rows: LabelledRows, places: Sequence[int], verdicts: Sequence[Verdict]) -> Predictions:
    probability = np.array([v.probability for v in verdicts], dtype=np.float64)
    abstained = np.array([v.hallucinated is None for v in verdicts], dtype=np.bool_)
    settled_so = np.array([v.hallucinated is True for v in verdicts], dtype=np.bool_) | (abstained & (probability > 0.5))
    return Predictions(rows.gold[np.array(places, dtype=np.intp)], settled_so, abstained, probability)


def _result(folder: Path, fields: dict[str, Any]) -> PastResult:
    outcomes = folder / f"{fields['name']}.jsonl"
    with outcomes.open(encoding="utf-8") as lines:
        settings = json.loads(json.loads(next(lines))["run"]["settings"])
    reasoner, branch = fields["reasoner"], method_card(fields["method"]).options
    rule = "rule (upper bound)" if fields["fitted"] == "the same rows" else "rule"
    maker = rule if not reasoner else f"llm:{settings['llm']['model'] or 'unnamed'}" if reasoner == "llm" else reasoner
    return PastResult(
        name=fields["name"], method=fields["method"], maker=maker, spec=_spec(fields), settings=settings[branch],
        figures=_figures(fields), seconds=fields["cost"]["seconds"],
        rows=fields["rows"], outcomes=outcomes,
    )  # fmt: skip


def _part(result: PastResult, share: dict[str, Any]) -> PastResult:
    """Return what a method got on a part of the rows."""
    return result._replace(
        maker=f"{result.maker}, {LENGTH_MATCHED}", rows=share["rows"], figures=_figures(share), seconds=None, spec="", whole=False
    )


def _figures(fields: dict[str, Any]) -> dict[str, Estimate]:
    return {name: Estimate(**figure) for name, figure in fields["figures"].items()}


def _spec(fields: dict[str, Any]) -> str:
    inside = f"[{','.join(fields['settings'])}]" if fields["settings"] else ""
    return f"{fields['name']}={fields['method']}:{fields['reasoner']}{inside}" if fields["reasoner"] else ""


def _input(folder: Path, named: str) -> Path:
    """Return the file of the rows: as it was named, or the file of that name, or the only one, in the folder's `input`."""
    there = sorted((folder / "input").glob("*.jsonl*"))
    beside = [p for p in there if p.name == Path(named).name] or (there if len(there) == 1 else [])
    return beside[0] if beside else Path(named)
