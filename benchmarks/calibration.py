#!/usr/bin/env python
"""What calibration on the KnowHalu paper's 100 validation pairs achieves on its 1,000 test pairs, with the encoder.

Everything is chosen on the validation pairs and by cross-validation among them; the test pairs are only measured on. Length alone
separates most of these pairs, so the length-matched ones are reported too. An interrupted run is continued.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import EvalRow, make_parser, paper_pairs, table_line, write_results

from knowhalu.api import Checker
from knowhalu.batch import detect
from knowhalu.calibration.calibrate import Calibration, calibrate, read_tunable
from knowhalu.calibration.cascade import TunableCascade
from knowhalu.calibration.measures import MEASURE_TITLES, MEASURES, estimate_ratio, measures_with_intervals
from knowhalu.calibration.report import UNSCALED_MEASURES, as_json
from knowhalu.calibration.tunable import ask_all_settings, read_set_names, read_verdict_lines
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


def on_test(calibration: Calibration, rows: LabelledRows, outcomes: Path) -> Predictions:
    """Return the predictions for the test rows by what was chosen on the validation rows, from stored outcomes."""
    profile = calibration.profile
    settings = load_settings(pairs=[f"method={profile.method}"])
    tuned = read_tunable(settings, read_verdict_lines(outcomes, rows), rows.gold, Goal("risk", 0.05))
    return decide_predictions(tuned.predict(profile.settings), profile.decision)


def measured(predictions: Predictions, rows: LabelledRows, matched: np.ndarray[Any, Any]) -> dict[str, dict[str, Estimate]]:
    """Measure all test rows, and the length-matched ones."""
    return {
        "test": measures_with_intervals(predictions, rows.groups),
        "matched": measures_with_intervals(predictions.rows(matched), rows.groups[matched]),
    }


def goals(val: Path, test: LabelledRows, outcomes: Path, work: Path, matched: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calibrate by each goal and measure on the test rows."""
    for number, (name, (goal, scaling)) in enumerate(GOALS.items()):
        try:
            calibration = calibrate(val, work / "val.toml", load_settings(), goal=goal, scaling=scaling)
        except InputError as error:
            yield name, {"refused": str(error)}
            continue
        fields = as_json(calibration)
        if number == 0:
            tuned = read_tunable(load_settings(), read_verdict_lines(outcomes, test), test.gold, goal)
            base = tuned.predict({"knowhalu": {"base_form": "unstructured", "delta1": 0.0, "delta2": 1.0}})
            yield "base form alone", measured(base, test, matched)
        yield name, {
            "settings": fields["profile"]["settings"], "decision": fields["profile"]["decision"],
            "grid": fields.get("grid") if number == 0 else None, "fitted": calibration.fitted,
            "cross_validated": calibration.held, "notes": calibration.notes,
            **measured(on_test(calibration, test, outcomes), test, matched),
        }  # fmt: skip


def cascades(val: Path, test: LabelledRows, outcomes: Path, work: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Set the band of a cascade by each risk; on the test rows, measure which stage decides and how often wrongly."""
    cascade = load_settings(pairs=["method=cascade"])
    for risk in RISKS:
        try:
            calibration = calibrate(val, work / "cascade.toml", cascade, goal=Goal("risk", risk))
        except InputError as error:
            yield f"{risk:g}", {"refused": str(error)}
            continue
        tuned = read_tunable(cascade, read_verdict_lines(outcomes, test), test.gold, Goal("risk", risk))
        assert isinstance(tuned, TunableCascade)
        settings = calibration.profile.settings
        predictions, stage = tuned.predict(settings), tuned.stage(settings)
        decides = stage != ""
        yield f"{risk:g}", {
            "settings": settings,
            "errors": {
                "faithful": estimate_ratio(test.gold, decides & ~predictions.settled, test.groups),
                "hallucinated": estimate_ratio(~test.gold, decides & predictions.settled, test.groups),
                "all": estimate_ratio(~predictions.right, decides, test.groups),
            },
            "sent_on": estimate_ratio(~decides, np.ones_like(decides), test.groups),
            "validation_sent_on": calibration.sent_on[""],
        }  # fmt: skip


def plain(value: Any) -> Any:
    """Turn figures into plain fields."""
    if isinstance(value, Estimate):
        return {name: None if v is None else round(v, 4) for name, v in value._asdict().items()}
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def markdown(results: Mapping[str, Any]) -> str:
    """Return the tables of the test figures of all goals, and of the cascades."""
    head = ["", "rows", *(MEASURE_TITLES[n] for n in MEASURES)]
    lines = [table_line(head), "|---|---|" + "---:|" * len(MEASURES)]
    for name, result in results["goals"].items():
        if "refused" in result:
            lines.append(f"| {name} | refused: {result['refused']} |" + " |" * len(MEASURES))
            continue
        parts = (("validation, cross-validated", result.get("cross_validated")), ("test", result["test"]),
                 ("test, length-matched", result["matched"]))  # fmt: skip
        lines += [table_line([name, rows, *(_cell(n, f[n]) for n in MEASURES)]) for rows, f in parts if f]
    lines += ["", "| risk | band | rules | wrong of those called faithful | wrong of those called hallucinated | sent on |",
              "|---|---|---|---:|---:|---:|"]  # fmt: skip
    for risk, result in results["cascades"].items():
        if "refused" in result:
            lines.append(f"| {risk} | refused: {result['refused']} | | | | |")
            continue
        band, rules = result["settings"]["cascade"], result["settings"]["lexical"]["rules"]
        shares = (result["errors"]["faithful"], result["errors"]["hallucinated"], result["sent_on"])
        cells = [f"{band['low']:.3f} to {band['high']:.3f}", ", ".join(rules) or "none", *map(format_percent, shares)]
        lines.append(table_line([risk, *cells]))
    return "\n".join(lines) + "\n"


def _cell(name: str, figure: Estimate) -> str:
    return format_number(figure, digits=3) if name in UNSCALED_MEASURES else format_percent(figure)


def main() -> None:
    """Read the arguments, calibrate, measure, write both files."""
    parser = make_parser(__doc__, "calibration.json", "data")
    parser.add_argument("--work", type=Path, default=Path(".runs/calibration"))
    args = parser.parse_args()
    val = write_rows(paper_pairs(args.data, "qa", "val"), args.work / "val.jsonl")
    test_file = write_rows(paper_pairs(args.data, "qa"), args.work / "test.jsonl")
    test, matched = read_labelled_rows(test_file), np.array(read_set_names(test_file)) == "length-matched"
    outcomes = checked("knowhalu", test_file, args.work / "test.outcomes.jsonl")
    results = {
        "rows": {"validation": len(read_labelled_rows(val).gold), "test": len(test.gold), "length_matched": int(matched.sum())},
        "goals": dict(goals(val, test, outcomes, args.work, matched)),
        "cascades": dict(cascades(val, test, checked("cascade", test_file, args.work / "test.cascade.jsonl"), args.work)),
    }
    write_results(args.out, plain(results), markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
