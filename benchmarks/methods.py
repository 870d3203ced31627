#!/usr/bin/env python
"""Every method that works with the encoder on labelled sets, compared with the trivial rules: metrics, tests and cost.

An interrupted run is continued: the outcomes stay in --work, one folder for each set.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from charts import draw_method_intervals
from common import make_parser, table_line, table_lines

from knowhalu.datasets.loading import open_dataset
from knowhalu.evaluation.dataset import DatasetEvaluation, evaluate_dataset
from knowhalu.evaluation.result_tables import as_json
from knowhalu.evaluation.runs import parse_specs
from knowhalu.evaluation.slices import LENGTH_MATCHED
from knowhalu.evaluation.tables import format_p_value, format_percent
from knowhalu.registry import METHODS

SPECS = (
    "knowhalu:encoder",
    "conli-both=conli:encoder[levels=both]",
    "conli-sentence=conli:encoder[levels=sentence]",
    "conli-entity=conli:encoder[levels=entity]",
    "factored-product=factored:encoder[rule=product]",
    "factored-minimum=factored:encoder[rule=minimum]",
    "factored-geometric=factored:encoder[rule=geometric]",
    "factored-calibrated=factored:encoder[rule=calibrated]",
)
"""The compared methods; any other method with the encoder takes part with its defaults."""
LEVELS = tuple(spec for spec in SPECS if spec.startswith("conli"))
LEFT_OUT = ("factored-academic", "selfcheck", "cascade")
"""Methods that cannot run on these sets: no row has citations or further responses, and no language model is available."""
SETS = {
    "qags_cnndm": ("qags", "qags_cnndm"), "summeval_conli": ("summeval", "summeval_conli"),
    "summedits8": ("summedits", "summedits8"), "bump_pairs": ("bump", "bump_pairs"),
    "knowhalu_qa": ("knowhalu-qa", "knowhalu_qa_pairs"), "knowhalu_summary": ("knowhalu-summarization", "knowhalu_summ_pairs"),
}  # fmt: skip
"""The measured data sets, each with its name and its file in the folder."""
REST = "The report of every set, with its costs, probabilities and breakdowns, is `comparison.md` in its folder of `--work`."
SHOWN = {"macro_f1": "Macro F1", "balanced": "Balanced accuracy", "auc": "ROC-AUC"}


def specs() -> list[str]:
    """Return the specifications of the compared methods."""
    named = {spec.method for spec in parse_specs(SPECS)} | set(LEFT_OUT)
    return [*SPECS, *(f"{n}:encoder" for n, card in METHODS.items() if "encoder" in card.reasoners and n not in named)]


def run(data: Path, name: str, work: Path, limit: int | None, pairs: list[str]) -> tuple[DatasetEvaluation, DatasetEvaluation]:
    """Compare all methods on one set, and from the same outcomes CoNLI's levels with one another."""
    known, file = SETS[name]
    path, folder, reported = data / f"{file}.jsonl.gz", work / name, dict[str, int]()

    def progress(method: str, p: Any) -> None:
        if p.done == p.total or p.done - reported.get(method, 0) >= 200:
            reported[method] = p.done
            print(f"{name}: {method}: {p.done} of {p.total}, {p.rate:.1f}/s", flush=True)

    source = open_dataset(known, path)
    whole = evaluate_dataset(source, path, parse_specs(specs()), folder, pairs=pairs, limit=limit, progress=progress)
    return whole, evaluate_dataset(source, path, parse_specs(LEVELS), folder, pairs=pairs, limit=limit)


def overview(evaluations: Mapping[str, DatasetEvaluation]) -> str:
    """Return a table for each metric: methods as lines, sets and their length-matched rows as columns."""
    results = {name: {r.name: (r.title, r.figures) for r in e.comparison.results} for name, e in evaluations.items()}
    for name, e in evaluations.items():
        matched = [s for s in e.subsets if s.name == LENGTH_MATCHED and s.rows < e.comparison.rows]
        results |= {f"{name}, {s.name}": {r.name: (r.name, r.figures) for r in s.results} for s in matched}
    parts = []
    for figure, title in SHOWN.items():
        rows = []
        for name in dict.fromkeys(name for by_name in results.values() for name in by_name):
            cells = [format_percent(by_name[name][1][figure]) if name in by_name else "-" for by_name in results.values()]
            mark = "*" if any(by_name[name][0] != name for by_name in results.values() if name in by_name) else ""
            rows.append([f"{name}{mark}", *cells])
        parts.append("\n".join(table_lines([title, *results], rows, names=1)))
    note = "In percent, in brackets the 95 % bootstrap interval. *: fitted on the very rows where a set has no validation split."
    return "\n\n".join([*parts, note])


def ablation(evaluations: Mapping[str, DatasetEvaluation]) -> str:
    """Return a table of CoNLI's levels alone, tested against both together (CoNLI, table 4)."""
    lines = ["| CoNLI, against both levels | set | Avg Acc, difference | p (McNemar) | p (Holm) |", "|---|---|---:|---:|---:|"]
    for name, evaluation in evaluations.items():
        for t in evaluation.comparison.tests:
            if t.name.startswith("conli"):
                lines.append(table_line([t.name, name, format_percent(t.difference), *map(format_p_value, (t.p, t.holm))]))
    return "\n".join(lines)


def warnings(name: str, evaluation: DatasetEvaluation) -> str:
    """List the warnings of a set, such as trivial rules that are as good as the methods."""
    return "\n".join([f"**{name}**", "", *(f"- {text}" for text in evaluation.warnings)])


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Remove the breakdowns, which only the report of a set shows."""
    return {key: value for key, value in fields.items() if key != "breakdowns"}


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "methods.json", "data")
    parser.add_argument("--only", nargs="*", choices=tuple(SETS), help="sets; default: all")
    parser.add_argument("--limit", type=int, help="rows of a set at most")
    parser.add_argument("--work", type=Path, default=Path(".runs/methods"), help="folder for the outcomes")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--plot", type=Path, help="SVG file of the chart, such as docs/methods.svg")
    args = parser.parse_args()
    evaluations: dict[str, DatasetEvaluation] = {}
    levels: dict[str, DatasetEvaluation] = {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in args.only or SETS:
        evaluations[name], levels[name] = run(args.data, name, args.work, args.limit, args.pairs)
        sections = [overview(evaluations), ablation(levels), *(warnings(n, e) for n, e in evaluations.items()), REST]
        plain = {
            "methods": {n: shown(as_json(e)) for n, e in evaluations.items()},
            "conli_levels": {n: {"tests": as_json(e)["tests"]} for n, e in levels.items()},
        }
        text = json.dumps(plain, indent=1)
        for folder in (args.work, args.data):  # a result names no folder of the machine that measured it
            text = text.replace(f'"{folder.as_posix()}/', '"')
        args.out.write_text(f"{text}\n", encoding="utf-8")
        args.out.with_suffix(".md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    if args.plot:
        draw_method_intervals(args.plot, plain["methods"])
    print(overview(evaluations), ablation(levels), sep="\n\n")


if __name__ == "__main__":
    main()
