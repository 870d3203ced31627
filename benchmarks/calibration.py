#!/usr/bin/env python
"""What calibration on the KnowHalu paper's 100 validation pairs gives on its 1,000 test pairs, with the encoder.

Everything is chosen on the validation pairs and by cross-validation among them; the test pairs are only measured on. Length alone
tells most of these pairs apart, so the length-matched ones stand beside. Stopped and started again, it goes on where it was.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import EvalRow, paper_pairs

from knowhalu.api import Checker
from knowhalu.batch import detect
from knowhalu.calibration.calibrate import Calibration, calibrate, read_tunable
from knowhalu.calibration.cascade import TunableCascade
from knowhalu.calibration.measures import MEASURE_TITLES, MEASURES, estimate_ratio, measures_with_intervals
from knowhalu.calibration.report import UNSCALED_MEASURES, as_json
from knowhalu.calibration.tunable import ask_all_settings, read_verdict_lines
from knowhalu.calibration.tuning import Goal, decide_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Predictions
from knowhalu.evaluation.tables import format_number, format_percent
from knowhalu.methods.common.calibrated import ScalingKind
from knowhalu.profiles import load_settings
from knowhalu.text.sentences import word_count

GOALS: dict[str, tuple[Goal, ScalingKind]] = {
    "thresholds (delta1, delta2)": (Goal("labels"), "none"),
    "and temperature": (Goal("labels"), "temperature"),
    "and Platt": (Goal("labels"), "platt"),
    "and isotonic": (Goal("labels"), "isotonic"),
    "best average": (Goal("average"), "none"),
    "precision 0.95": (Goal("precision", 0.95), "none"),
    "at most 10 % open": (Goal("abstain", 0.1), "none"),
}
RISKS = (0.05, 0.1, 0.15)
MATCHED = 2
"""Words by which the answers of a length-matched pair differ at most."""


def write_rows(rows: list[EvalRow], path: Path) -> Path:
    """Write rows with labels and groups, the length-matched pairs as a set."""
    words = {(r.group, r.faithful): word_count(r.sample.response) for r in rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            matched = abs(words[row.group, True] - words[row.group, False]) <= MATCHED
            meta = {"group": row.group, "set": "length-matched" if matched else "others"}
            label = "faithful" if row.faithful else "hallucinated"
            file.write(row.sample.model_copy(update={"label": label, "meta": meta}).model_dump_json(exclude_none=True) + "\n")
    return path


def checked(method: str, input: Path, output: Path) -> Path:
    """Check the test rows once, with all that any threshold needs."""
    detect(Checker(ask_all_settings(load_settings(pairs=[f"method={method}"]))), input, output, progress=print_progress)
    return output


def print_progress(p: Any) -> None:
    """Print a line now and then."""
    if p.done % 200 == 0 or p.done == p.total:
        print(f"{p.done} of {p.total}, {p.rate:.1f}/s", flush=True)


def on_test(found: Calibration, rows: LabelledRows, outcomes: Path) -> Predictions:
    """Return what is said of the test rows by what was chosen on the validation rows; nothing is asked."""
    profile = found.profile
    settings = load_settings(pairs=[f"method={profile.method}"])
    tuned = read_tunable(settings, read_verdict_lines(outcomes, rows), rows.gold, Goal("risk", 0.05))
    return decide_predictions(tuned.predict(profile.settings), profile.decision)


def told(said: Predictions, rows: LabelledRows, matched: np.ndarray[Any, Any]) -> dict[str, dict[str, Estimate]]:
    """Measure all test rows, and the length-matched ones."""
    return {
        "test": measures_with_intervals(said, rows.groups),
        "matched": measures_with_intervals(said.rows(matched), rows.groups[matched]),
    }


def goals(val: Path, test: LabelledRows, outcomes: Path, work: Path, matched: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calibrate by each goal and measure on the test rows."""
    for number, (name, (goal, scaling)) in enumerate(GOALS.items()):
        try:
            found = calibrate(val, work / "val.toml", load_settings(), goal=goal, scaling=scaling)
        except InputError as error:
            yield name, {"refused": str(error)}
            continue
        fields = as_json(found)
        if number == 0:
            said = read_tunable(load_settings(), read_verdict_lines(outcomes, test), test.gold, goal)
            plain = told(said.predict({"knowhalu": {"base_form": "unstructured", "delta1": 0.0, "delta2": 1.0}}), test, matched)
            yield "base form alone", {"test": plain["test"], "matched": plain["matched"]}
        yield name, {
            "settings": fields["profile"]["settings"], "decision": fields["profile"]["decision"],
            "grid": fields.get("grid") if number == 0 else None, "fitted": found.fitted, "cross_validated": found.held,
            "notes": found.notes, **told(on_test(found, test, outcomes), test, matched),
        }  # fmt: skip


def cascades(val: Path, test: LabelledRows, outcomes: Path, work: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Set the band of a cascade by each risk; on the test rows, count who decides and how often wrongly."""
    for risk in RISKS:
        try:
            found = calibrate(val, work / "cascade.toml", load_settings(pairs=["method=cascade"]), goal=Goal("risk", risk))
        except InputError as error:
            yield f"{risk:g}", {"refused": str(error)}
            continue
        tuned = read_tunable(
            load_settings(pairs=["method=cascade"]), read_verdict_lines(outcomes, test), test.gold, Goal("risk", risk)
        )
        assert isinstance(tuned, TunableCascade)
        settings = found.profile.settings
        said, stage = tuned.predict(settings), tuned.stage(settings)
        decides = stage != ""
        yield f"{risk:g}", {
            "settings": settings,
            "errors": {
                "faithful": estimate_ratio(test.gold, decides & ~said.settled, test.groups),
                "hallucinated": estimate_ratio(~test.gold, decides & said.settled, test.groups),
                "all": estimate_ratio(~said.right, decides, test.groups),
            },
            "sent_on": estimate_ratio(~decides, np.ones_like(decides), test.groups), "validation_sent_on": found.sent_on[""],
        }  # fmt: skip


def plain(value: Any) -> Any:
    """Turn figures into plain fields."""
    if isinstance(value, Estimate):
        return {name: None if v is None else round(v, 4) for name, v in value._asdict().items()}
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def markdown(found: Mapping[str, Any]) -> str:
    """Lay out the test figures of all goals, and the cascades."""
    head = ["", "rows", *(MEASURE_TITLES[n] for n in MEASURES)]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * len(MEASURES)]
    for name, result in found["goals"].items():
        if "refused" in result:
            lines.append(f"| {name} | refused: {result['refused']} |" + " |" * len(MEASURES))
            continue
        parts = (("validation, cross-validated", result.get("cross_validated")), ("test", result["test"]),
                 ("test, length-matched", result["matched"]))  # fmt: skip
        lines += [f"| {name} | {which} | {' | '.join(_cell(n, f[n]) for n in MEASURES)} |" for which, f in parts if f]
    lines += ["", "| risk | band | rules | wrong of those called faithful | wrong of those called hallucinated | sent on |",
              "|---|---|---|---:|---:|---:|"]  # fmt: skip
    for risk, result in found["cascades"].items():
        if "refused" in result:
            lines.append(f"| {risk} | refused: {result['refused']} | | | | |")
            continue
        band, rules = result["settings"]["cascade"], result["settings"]["lexical"]["rules"]
        errors = result["errors"]
        cells = [f"{band['low']:.3f} to {band['high']:.3f}", ", ".join(rules) or "none", format_percent(errors["faithful"])]
        lines.append(
            f"| {risk} | {' | '.join([*cells, format_percent(errors['hallucinated']), format_percent(result['sent_on'])])} |"
        )
    return "\n".join(lines) + "\n"


def _cell(name: str, figure: Estimate) -> str:
    return format_number(figure, digits=3) if name in UNSCALED_MEASURES else format_percent(figure)


def main() -> None:
    """Read the arguments, calibrate, measure, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled evaluation files")
    parser.add_argument("--work", type=Path, default=Path(".runs/calibration"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/calibration.json"))
    args = parser.parse_args()
    val = write_rows(paper_pairs(args.data, "qa", "val"), args.work / "val.jsonl")
    test_file = write_rows(paper_pairs(args.data, "qa"), args.work / "test.jsonl")
    test, matched = read_labelled_rows(test_file), _matched(test_file)
    outcomes = checked("knowhalu", test_file, args.work / "test.outcomes.jsonl")
    found = {
        "rows": {"validation": len(read_labelled_rows(val).gold), "test": len(test.gold), "length_matched": int(matched.sum())},
        "goals": dict(goals(val, test, outcomes, args.work, matched)),
        "cascades": dict(cascades(val, test, checked("cascade", test_file, args.work / "test.cascade.jsonl"), args.work)),
    }
    args.out.write_text(json.dumps(plain(found), indent=1) + "\n", encoding="utf-8")
    args.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


def _matched(path: Path) -> Any:
    from knowhalu.calibration.tunable import read_set_names

    return np.array(read_set_names(path)) == "length-matched"


if __name__ == "__main__":
    main()
