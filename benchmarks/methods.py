#!/usr/bin/env python
"""Every method that works with the encoder over labelled sets, beside the trivial rules: figures with intervals, tests, cost.

Stopped and started again, it goes on where it was: the outcomes stay in --work, one folder for each set.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval_rows import EvalRow, paper_pairs, rows_of

from knowhalu.evaluation.comparison import Comparison, compare
from knowhalu.evaluation.report import as_json, markdown, percent, title_of
from knowhalu.evaluation.specs import parse_specs
from knowhalu.names import METHODS

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
LEFT_OUT = ("factored-academic", "selfcheck", "cascade")
"""Methods that have nothing to do on these sets: no row has citations or further responses, and there is no model to go on to."""
CLAIMS = ("qags_cnndm", "summeval_conli", "summedits8", "bump_pairs")
PAPER = {"knowhalu_qa": "qa", "knowhalu_summary": "summary"}
"""The KnowHalu paper's own rows, which have a validation split to fit the trivial rules on."""
SHOWN = {"macro_f1": "Macro F1", "balanced": "Balanced accuracy", "auc": "ROC-AUC"}


def specs() -> list[str]:
    """Return what is compared."""
    named = {spec.method for spec in parse_specs(SPECS)} | set(LEFT_OUT)
    return [*SPECS, *(f"{n}:encoder" for n, card in METHODS.items() if "encoder" in card.reasoners and n not in named)]


def write_rows(rows: Iterable[EvalRow], path: Path) -> Path:
    """Write rows with their labels and groups as a user would have them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            label = "faithful" if row.faithful else "hallucinated"
            sample = row.sample.model_copy(update={"label": label, "meta": {"group": row.group}})
            file.write(sample.model_dump_json(exclude_none=True) + "\n")
    return path


def run(data: Path, name: str, work: Path, limit: int | None, pairs: list[str]) -> Comparison:
    """Compare all methods on one set."""
    folder, fit = work / name, None
    if name in PAPER:
        source = write_rows(paper_pairs(data, PAPER[name]), folder / "input" / "all.jsonl")
        fit = write_rows(paper_pairs(data, PAPER[name], "val"), folder / "input" / "validation.jsonl")
    else:
        source = write_rows(rows_of(data, name), folder / "input" / "all.jsonl")
    said: dict[str, int] = {}

    def progress(method: str, p: Any) -> None:
        if p.done == p.total or p.done - said.get(method, 0) >= 200:
            said[method] = p.done
            print(f"{name}: {method}: {p.done} of {p.total}, {p.rate:.1f}/s", flush=True)

    return compare(source, parse_specs(specs()), folder, pairs=pairs, fit=fit, limit=limit, progress=progress)


def overview(found: Mapping[str, Comparison]) -> str:
    """Lay out methods against sets, for each figure that is shown."""
    names = list(dict.fromkeys(r.name for c in found.values() for r in c.results))
    parts = []
    for figure, title in SHOWN.items():
        head = f"| {title} | {' | '.join(found)} |\n|---|{'---:|' * len(found)}"
        lines = []
        for name in names:
            by_set = [next((r for r in c.results if r.name == name), None) for c in found.values()]
            mark = "*" if any(r is not None and title_of(r) != name for r in by_set) else ""
            lines.append(f"| {name}{mark} | {' | '.join('-' if r is None else percent(r.figures[figure]) for r in by_set)} |")
        parts.append("\n".join([head, *lines]))
    note = "In percent, in brackets the 95 % bootstrap interval. *: fitted on the very rows where a set has no validation split."
    return "\n\n".join([*parts, note])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--only", nargs="*", choices=(*CLAIMS, *PAPER), help="sets; default: all")
    parser.add_argument("--limit", type=int, help="rows of a set at most")
    parser.add_argument("--work", type=Path, default=Path(".runs/methods"), help="folder for the outcomes")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/methods.json"))
    args = parser.parse_args()
    found: dict[str, Comparison] = {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in args.only or (*CLAIMS, *PAPER):
        found[name] = run(args.data, name, args.work, args.limit, args.pairs)
        sections = [overview(found), *(f"### {n}\n\n{markdown(c).rstrip()}" for n, c in found.items())]
        args.out.write_text(json.dumps({n: as_json(c) for n, c in found.items()}, indent=1) + "\n", encoding="utf-8")
        args.out.with_suffix(".md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(overview(found))


if __name__ == "__main__":
    main()
