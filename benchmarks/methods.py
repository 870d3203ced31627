#!/usr/bin/env python
"""Every method that works with the encoder over labelled sets, beside the trivial rules: figures with intervals, tests, cost.

Stopped and started again, it goes on where it was: the outcomes stay in --work, one folder for each set.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from charts import draw_method_intervals
from common import make_parser

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
"""What is compared; a method with the encoder that is not named here takes part as it is."""
LEVELS = tuple(spec for spec in SPECS if spec.startswith("conli"))
LEFT_OUT = ("factored-academic", "selfcheck", "cascade")
"""Methods that have nothing to do on these sets: no row has citations or further responses, and there is no model to go on to."""
SETS = {
    "qags_cnndm": ("qags", "qags_cnndm"), "summeval_conli": ("summeval", "summeval_conli"),
    "summedits8": ("summedits", "summedits8"), "bump_pairs": ("bump", "bump_pairs"),
    "knowhalu_qa": ("knowhalu-qa", "knowhalu_qa_pairs"), "knowhalu_summary": ("knowhalu-summarization", "knowhalu_summ_pairs"),
}  # fmt: skip
"""What is measured: the data set, and its file in the folder."""
REST = "The report of every set, with its costs, probabilities and breakdowns, is `comparison.md` in its folder of `--work`."
SHOWN = {"macro_f1": "Macro F1", "balanced": "Balanced accuracy", "auc": "ROC-AUC"}


def specs() -> list[str]:
    """Return what is compared."""
    named = {spec.method for spec in parse_specs(SPECS)} | set(LEFT_OUT)
    return [*SPECS, *(f"{n}:encoder" for n, card in METHODS.items() if "encoder" in card.reasoners and n not in named)]


def run(data: Path, name: str, work: Path, limit: int | None, pairs: list[str]) -> tuple[DatasetEvaluation, DatasetEvaluation]:
    """Compare all methods on one set, and by the same outcomes CoNLI's levels with one another."""
    known, file = SETS[name]
    path, folder, said = data / f"{file}.jsonl.gz", work / name, dict[str, int]()

    def progress(method: str, p: Any) -> None:
        if p.done == p.total or p.done - said.get(method, 0) >= 200:
            said[method] = p.done
            print(f"{name}: {method}: {p.done} of {p.total}, {p.rate:.1f}/s", flush=True)

    source = open_dataset(known, path)
    whole = evaluate_dataset(source, path, parse_specs(specs()), folder, pairs=pairs, limit=limit, progress=progress)
    return whole, evaluate_dataset(source, path, parse_specs(LEVELS), folder, pairs=pairs, limit=limit)


def overview(found: Mapping[str, DatasetEvaluation]) -> str:
    """Lay out methods against sets and their length-matched rows, for each figure that is shown."""
    results = {name: {r.name: (r.title, r.figures) for r in e.comparison.results} for name, e in found.items()}
    for name, e in found.items():
        matched = [s for s in e.subsets if s.name == LENGTH_MATCHED and s.rows < e.comparison.rows]
        results |= {f"{name}, {s.name}": {r.name: (r.name, r.figures) for r in s.results} for s in matched}
    parts = []
    for figure, title in SHOWN.items():
        lines = [f"| {title} | {' | '.join(results)} |\n|---|{'---:|' * len(results)}"]
        for name in dict.fromkeys(name for by_name in results.values() for name in by_name):
            cells = [format_percent(by_name[name][1][figure]) if name in by_name else "-" for by_name in results.values()]
            mark = "*" if any(by_name[name][0] != name for by_name in results.values() if name in by_name) else ""
            lines.append(f"| {name}{mark} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    note = "In percent, in brackets the 95 % bootstrap interval. *: fitted on the very rows where a set has no validation split."
    return "\n\n".join([*parts, note])


def ablation(found: Mapping[str, DatasetEvaluation]) -> str:
    """Lay out what CoNLI's levels get alone, tested against both together (CoNLI, table 4)."""
    lines = ["| CoNLI, against both levels | set | Avg Acc, difference | p (McNemar) | p (Holm) |", "|---|---|---:|---:|---:|"]
    for name, evaluation in found.items():
        for t in evaluation.comparison.tests:
            if t.name.startswith("conli"):
                lines.append(
                    f"| {t.name} | {name} | {format_percent(t.difference)} | {format_p_value(t.p)} | {format_p_value(t.holm)} |"
                )
    return "\n".join(lines)


def warnings(name: str, evaluation: DatasetEvaluation) -> str:
    """List where a rule that knows nothing of truth does as well."""
    return "\n".join([f"**{name}**", "", *(f"- {text}" for text in evaluation.warnings)])


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only the report of a set shows."""
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
    found: dict[str, DatasetEvaluation] = {}
    levels: dict[str, DatasetEvaluation] = {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in args.only or SETS:
        found[name], levels[name] = run(args.data, name, args.work, args.limit, args.pairs)
        sections = [overview(found), ablation(levels), *(warnings(n, e) for n, e in found.items()), REST]
        plain = {
            "methods": {n: shown(as_json(e)) for n, e in found.items()},
            "conli_levels": {n: {"tests": as_json(e)["tests"]} for n, e in levels.items()},
        }
        told = json.dumps(plain, indent=1)
        for folder in (args.work, args.data):  # a result names no folder of the machine that measured it
            told = told.replace(f'"{folder.as_posix()}/', '"')
        args.out.write_text(f"{told}\n", encoding="utf-8")
        args.out.with_suffix(".md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    if args.plot:
        draw_method_intervals(args.plot, plain["methods"])
    print(overview(found), ablation(levels), sep="\n\n")


if __name__ == "__main__":
    main()
