"""Earlier comparisons, read from their folders: the reasoner and settings of every result, and its metrics."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.evaluation.runs import SAME_ROWS
from knowhalu.evaluation.slices import LENGTH_MATCHED
from knowhalu.io.journal import LLM_IDENTITY_FIELD
from knowhalu.io.outcomes import read_outcome_table, read_run_header
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
from knowhalu.text.probabilities import complement
from knowhalu.types import Judgment, KnowledgeForm, Task

PAST_RUN_HINT = "Run `knowhalu compare` again, or name another folder"


class PastResult(NamedTuple):
    """The result of one method in an earlier comparison; `maker` is "encoder", "llm:MODEL", or "rule" without a reasoner.

    `spec` is its specification for `knowhalu compare`, empty for a rule, which always takes part. `settings` are those that
    decide the result. A result that is not `whole` is that of the length-matched rows, as its maker tells. The `seconds` of a
    `sequential` result are those of one text after another.
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
    sequential: bool = False


class PastRun(NamedTuple):
    """An earlier comparison: its folder, the file of its rows, and the result of each method."""

    folder: Path
    input: Path
    results: tuple[PastResult, ...]


def read_past_run(folder: Path) -> PastRun:
    """Read the folder of a comparison; raises InputError naming the file that cannot be read."""
    path = folder / "comparison.json"
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        whole = [_result(folder, result) for result in fields["results"] if result["method"] in METHODS]
        parts = {s["name"]: {r["name"]: r for r in s["results"]} for s in fields.get("subsets", ())}
        matched = [_part(r, parts[LENGTH_MATCHED][r.name]) for r in whole if r.name in parts.get(LENGTH_MATCHED, {})]
        return PastRun(folder, _input(folder, fields["input"]), (*whole, *matched))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}). {PAST_RUN_HINT}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not a comparison of this version ({type(error).__name__}: {error}). {PAST_RUN_HINT}."
        ) from error


def metrics_by_form(run: PastRun, result: PastResult, form: KnowledgeForm) -> tuple[dict[str, Estimate], int] | None:
    """Return the metrics of KnowHalu with one form of knowledge alone, from the stored judgments of a run, and their rows.

    Where every text was to be judged by both forms, those on which this form failed are left out, as failures are. None where
    the run has not judged every segment by this form. Raises InputError where the rows are missing or have changed.
    """
    rows = read_labelled_rows(run.input)
    verdicts: dict[int, Verdict | None] = {}

    def visit(place: int, fields: dict[str, Any]) -> None:
        if "stage" not in fields:
            verdicts[place] = verdict_by_form(Verdict.model_validate(fields), form)

    try:
        read_outcome_table(result.outcomes, rows.row_index, visit)
    except InputError as error:
        raise InputError(f"{error} {PAST_RUN_HINT}.") from error
    judged = [verdict for verdict in verdicts.values() if verdict is not None]
    if len(judged) < len(verdicts) and (result.settings.get("second_opinion") != "always" or not judged):
        return None
    places = np.array([place for place, verdict in verdicts.items() if verdict is not None], dtype=np.intp)
    predictions = _predictions(rows.gold[places], judged)
    return metrics_with_intervals(predictions, rows.groups[places], draw_resamples(int(rows.groups.max()) + 1)), len(judged)


def verdict_by_form(verdict: Verdict, form: KnowledgeForm) -> Verdict | None:
    """Return the verdict of one form of knowledge alone; None where a segment was not judged by it."""
    if not verdict.segments:
        return verdict
    segments = []
    for segment in verdict.segments:
        judgment = next((j for j in (segment.base, segment.supplement) if j is not None and j.form is form), None)
        if judgment is None:
            return None
        segments.append(_single_form_segment(segment, judgment, verdict.task))
    worst = deciding_segment(segments)
    decided = {"label": worst.label, "hallucinated": is_hallucinated(worst.label), "probability": text_probability(segments),
            "inconclusive_reason": worst.inconclusive_reason, "relation": worst.relation}  # fmt: skip
    return verdict.model_copy(update={**decided, "segments": tuple(segments)})


def _single_form_segment(segment: Segment, judgment: Judgment, task: Task) -> Segment:
    label = resolve_inconclusive(judgment.label, task)
    return segment.model_copy(
        update={
            "base": judgment,
            "supplement": None,
            "label": label,
            "probability": complement(judgment.p_supported),
            "inconclusive_reason": inconclusive_reason(label, judgment),
            "relation": error_relation(label, judgment, segment.findings),
        }
    )


def _predictions(gold: Flags, verdicts: Sequence[Verdict]) -> Predictions:
    probability = np.array([v.probability for v in verdicts], dtype=np.float64)
    abstained = np.array([v.hallucinated is None for v in verdicts], dtype=np.bool_)
    hallucinated = np.array([v.hallucinated is True for v in verdicts], dtype=np.bool_)
    return Predictions(gold, hallucinated | (abstained & (probability > 0.5)), abstained, probability)


def _result(folder: Path, fields: dict[str, Any]) -> PastResult:
    outcomes = folder / f"{fields['name']}.jsonl"
    head = read_run_header(outcomes)
    settings = json.loads(head["settings"])
    reasoner, branch = fields["reasoner"], method_card(fields["method"]).options
    rule = "rule (upper bound)" if fields["fitted"] == SAME_ROWS else "rule"
    maker = rule if not reasoner else f"llm:{_model_name(head, settings)}" if reasoner == "llm" else reasoner
    return PastResult(
        name=fields["name"], method=fields["method"], maker=maker, spec=_spec(fields), settings=settings[branch],
        figures=_figures(fields), seconds=fields["cost"]["seconds"],
        rows=fields["rows"], outcomes=outcomes, sequential=fields.get("sequential", False),
    )  # fmt: skip


def _model_name(head: dict[str, str], settings: dict[str, Any]) -> str:
    """Return the name of the model that answered, as the run has stored it with a hash, or else that of the settings."""
    return head.get(LLM_IDENTITY_FIELD, "").rpartition(" ")[0] or settings["llm"]["model"] or "unnamed"


def _part(result: PastResult, share: dict[str, Any]) -> PastResult:
    """Return the result of a method on the length-matched rows."""
    return result._replace(
        maker=f"{result.maker}, {LENGTH_MATCHED}", rows=share["rows"], figures=_figures(share), seconds=None, spec="", whole=False
    )


def _figures(fields: dict[str, Any]) -> dict[str, Estimate]:
    return {name: Estimate(**figure) for name, figure in fields["figures"].items()}


def _spec(fields: dict[str, Any]) -> str:
    inside = f"[{','.join(fields['settings'])}]" if fields["settings"] else ""
    return f"{fields['name']}={fields['method']}:{fields['reasoner']}{inside}" if fields["reasoner"] else ""


def _input(folder: Path, named: str) -> Path:
    """Return the file of the rows: that of this name in the folder `input`, or the only one there, or the path as given."""
    files = sorted((folder / "input").glob("*.jsonl*"))
    matching = [p for p in files if p.name == Path(named).name] or (files if len(files) == 1 else [])
    return matching[0] if matching else Path(named)
