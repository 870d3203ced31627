#!/usr/bin/env python
"""How often the rules of a cascade's first stage are wrong, by set: why none but `copied` decides unless calibration lets it."""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from eval_rows import read, sample

from knowhalu.methods.baselines.lexical import LexicalRules
from knowhalu.methods.baselines.options import LexicalRule
from knowhalu.methods.common.sources import given_passages
from knowhalu.types import Label, Sample

RULES: tuple[LexicalRule, ...] = ("copied", "dates", "numbers", "names")
MOST = 1500
"""Claims of each set."""


def drawn(mix: Path) -> dict[str, list[tuple[Sample, bool]]]:
    """Take the first claims of every set, with whether each is supported."""
    found: dict[str, list[tuple[Sample, bool]]] = defaultdict(list)
    for row in read(mix):
        if len(found[row["set"]]) < MOST:
            found[row["set"]].append((sample("-", row["source"], row["claim"]), row["label"] == "supported"))
    return dict(found)


def judged(rows: list[tuple[Sample, bool]], rule: LexicalRule) -> dict[str, int]:
    """Count the claims that a rule decides, and those that it decides wrongly."""
    said = [(found[0].label, gold) for s, gold in rows if (found := LexicalRules().findings(s, given_passages(s), (rule,)))]
    return {"decided": len(said), "wrong": sum((label is Label.CORRECT) != gold for label, gold in said)}


def main() -> None:
    """Read the arguments, count, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mix", type=Path, required=True, help="labelled training claims, each with its set and source")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/lexical_rules.json"))
    args = parser.parse_args()
    sets = drawn(args.mix)
    found = {name: {"rows": len(rows), **{rule: judged(rows, rule) for rule in RULES}} for name, rows in sorted(sets.items())}
    args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, counts in found.items():
        print(name, counts)


if __name__ == "__main__":
    main()
