"""A calibration as tables, notes and plain fields."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from knowhalu.calibration.calibrate import Calibration, Measures
from knowhalu.calibration.measures import MEASURE_TITLES, MEASURES
from knowhalu.calibration.two_forms import QUANTILES, ThresholdGrid
from knowhalu.evaluation.bootstrap import RESAMPLES
from knowhalu.evaluation.tables import ResultTable, as_json_text, as_plain, format_number, format_percent
from knowhalu.io.output_files import write_text
from knowhalu.profiles import report_path

UNSCALED_MEASURES = ("brier", "ece")
"""Measures that are not shown in percent."""
STAGE_TITLES = {"rules": "rules", "encoder": "encoder", "llm": "language model"}


def describe_choice(calibration: Calibration) -> list[str]:
    """Return lines with the chosen values, for all rows and by set."""
    profile = calibration.profile
    parts = [("", profile.settings, profile.decision), *((n, f.settings, f.decision) for n, f in profile.sets.items())]
    lines = [f"goal: {profile.goal}"]
    for name, settings, decision in parts:
        values = [f"{k} = {_short(v)}" for branch in settings.values() if isinstance(branch, dict) for k, v in branch.items()]
        if decision.low is not None:
            limits = [f"over {decision.high:.4g} hallucinated", f"at most {decision.low:.4g} faithful"]
            values.append("P(hallucinated) " + ", ".join(limits if decision.low != decision.high else limits[:1]))
        if decision.scaling.kind != "none":
            values.append(f"{decision.scaling.kind} scaling")
        lines.append(f"{f'set {name}' if name else 'chosen'}: {'; '.join(values) or 'nothing'}")
    return lines


def make_tables(calibration: Calibration) -> list[ResultTable]:
    """Return the measures, and for a cascade the share of every stage."""
    data = calibration.profile.data
    rows = [("before calibration", calibration.before), ("on the fitted rows (optimistic)", calibration.fitted)]
    rows += [("cross-validated", calibration.held)] if calibration.held is not None else []
    rows += [
        (f"set {name}, {'cross-validated' if held else 'fitted rows'}", held or own)
        for name, (own, held) in calibration.on.items()
    ]
    title = f"{data.rows:,} rows, {data.hallucinated:,} hallucinated, {calibration.groups:,} groups"
    shown = [
        ResultTable(title, ("", *(MEASURE_TITLES[n] for n in MEASURES)), [(name, *_cells(figures)) for name, figures in rows])
    ]
    if calibration.stages:
        head = ("decided by", "as", "rows", "share", "wrong, fitted rows", "wrong, cross-validated")
        cells = [
            (STAGE_TITLES[s.name], s.label, f"{s.rows:,}", *map(format_percent, (s.share, s.errors, s.held)))
            for s in calibration.stages
        ]
        shown.append(ResultTable("Decisions of each stage", head, cells))
        sent: list[tuple[str, ...]] = [(name or "all", format_percent(figure)) for name, figure in calibration.sent_on.items()]
        shown.append(ResultTable("Left to the language model", ("set", "share of rows"), sent))
    return shown


def make_notes(calibration: Calibration) -> list[str]:
    """Return what the columns mean, and what a reader must know of the figures."""
    return [
        f"In percent except Brier and ECE, with 95 % bootstrap intervals: {RESAMPLES:,} resamples of groups of rows that share a "
        "source, question or pair.",
        "Cross-validated: each fifth of the groups with the thresholds chosen on the others; expect this on new rows.",
        "Avg Acc counts rows left open as wrong; Avg Acc of decided leaves them out. Brier and ECE: lower is better.",
        *calibration.notes,
    ]


def write_calibration(calibration: Calibration, profile: Path) -> Path:
    """Write all figures and the grid to the file next to a profile; return its path."""
    path = report_path(profile)
    write_text(path, as_json_text(as_json(calibration)))
    return path


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cells(figures: Measures) -> tuple[str, ...]:
    return tuple(
        format_number(figures[name], digits=3) if name in UNSCALED_MEASURES else format_percent(figures[name])
        for name in MEASURES
    )


def as_json(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as plain fields; a figure is {value, low, high}, a grid has its quantiles and average accuracies."""
    grids = {name: _grid(grid) for name, grid in calibration.grids.items()}
    return {
        "profile": json.loads(calibration.profile.model_dump_json(exclude={"data": {"hashes"}})),
        "groups": calibration.groups,
        "figures": {
            "before": as_plain(calibration.before),
            "fitted": as_plain(calibration.fitted),
            "cross_validated": as_plain(calibration.held),
        },
        "sets": {
            name: {"fitted": as_plain(own), "cross_validated": as_plain(held)} for name, (own, held) in calibration.on.items()
        },
        "stages": as_plain(calibration.stages),
        "sent_on": {name or "all": as_plain(figure) for name, figure in calibration.sent_on.items()},
        **({"grid": grids.pop("")} if "" in grids else {}),
        "grids": grids,
        "notes": list(calibration.notes),
    }


def _grid(grid: ThresholdGrid) -> dict[str, Any]:
    averages = [[None if np.isnan(v) else round(float(v), 6) for v in row] for row in grid.average]
    return {
        "base": str(grid.base), "q1": QUANTILES.tolist(), "q2": QUANTILES.tolist(), "delta1": grid.delta1.tolist(),
        "delta2": grid.delta2.tolist(), "average": averages, "never": grid.never,
    }  # fmt: skip
