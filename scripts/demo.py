#!/usr/bin/env python
"""Demonstrate KnowHalu: build an index, check the prepared items, and compare the verdicts with the gold labels."""

import shutil
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from knowhalu.api import Checker
from knowhalu.batch import RunSummary, detect
from knowhalu.cli.show import make_console, show_item
from knowhalu.cli.tables import PlainProgress, format_duration, show_scores
from knowhalu.errors import IndexFormatError, KnowHaluError
from knowhalu.evaluation.metrics import Score, score_labels
from knowhalu.index.extension import verify_index
from knowhalu.index.manifest import read_index_info
from knowhalu.io.outcomes import parse_outcome
from knowhalu.io.samples import read_samples
from knowhalu.results import Outcome, Verdict
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.settings import Settings
from knowhalu.text.sentences import sanitize
from knowhalu.types import Sample

CORPUS, ITEMS = Path("demo/corpus.jsonl"), Path("demo/items.jsonl")
INDEX, OUTPUT = Path("indexes/demo"), Path("demo/out/verdicts.jsonl")
NEXT = """
Try next:
  {0} check -q "How long did Gagarin's flight last?" -a "48 minutes" --index indexes/demo
  {0} check -q "How long did Gagarin's flight last?" -a "48 minutes" --index indexes/demo --steps
  {0} check --claim "Voyager 2 has flown past Neptune." --index indexes/demo --json
With your own documents (JSONL, CSV, or a folder of .txt and .md) and answers (JSONL):
  {0} index build my-texts/ -o indexes/mine
  {0} detect my-answers.jsonl -o verdicts.jsonl --index indexes/mine
Report the installation, and print all settings:
  {0} doctor
  {0} settings"""


def main() -> int:
    """Run the demonstration from the root of a checkout; returns 1 if an item has no verdict."""
    start = time.perf_counter()
    console = make_console()
    _ensure_index(console)
    samples = list(read_samples(ITEMS))
    console.print(f"\nChecking {len(samples)} items of {ITEMS}", style="bold")
    # every run checks all items again, since stored verdicts may come from another model
    OUTPUT.unlink(missing_ok=True)
    checker = Checker(Settings(retrieval=RetrievalOptions(index=INDEX)))
    summary = detect(checker, ITEMS, OUTPUT, progress=PlainProgress(console))
    outcomes = _outcomes()
    for group, members in groupby(sorted(samples, key=_group), key=_group):
        console.print(Text(f"\n{sanitize(group).replace('_', ' ')}", style="bold underline"))
        for sample in members:
            show_item(console, sample, outcomes[sample.id], note=_left_open(sample, outcomes[sample.id]))
    console.print()
    _show_scores(console, samples, outcomes, summary)
    _show_right(console, samples, outcomes)
    total = format_duration(time.perf_counter() - start)
    console.print(f"\nChecked {len(samples)} items in {format_duration(summary.seconds)}; the whole demonstration took {total}.")
    console.print(f"All verdicts with their steps are in {OUTPUT}.")
    console.print(NEXT.format(_program()))
    return 1 if summary.failed else 0


def _ensure_index(console: Console) -> None:
    """Build the index, unless there is an intact one that is not older than the corpus."""
    try:
        fresh = (INDEX / "manifest.json").stat().st_mtime >= CORPUS.stat().st_mtime
        if fresh and not verify_index(INDEX):
            counts = read_index_info(INDEX).counts
            console.print(f"{INDEX}: {counts.passages} passages of {counts.documents} documents, intact")
            return
    except (OSError, IndexFormatError):
        pass  # a broken index is built again
    console.print(f"Building {INDEX} from {CORPUS}", style="bold")
    command = [sys.executable, "scripts/build_index.py", str(CORPUS), "-o", str(INDEX)]
    subprocess.run([*command, "--force"] if INDEX.exists() else command, check=True)


def _outcomes() -> dict[str, Outcome]:
    with OUTPUT.open("rb") as file:
        file.readline()  # the header of the run
        outcomes = [parse_outcome(line) for line in file]
    return {outcome.id: outcome for outcome in outcomes}


def _program() -> str:
    """Return the command to call, also where the virtual environment is not active."""
    program = Path(sys.executable).with_name("knowhalu")
    if shutil.which("knowhalu") is not None or not program.exists():
        return "knowhalu"
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def _group(sample: Sample) -> str:
    return str(sample.meta.get("group", "items"))


def _is_open(outcome: Outcome) -> bool:
    return isinstance(outcome, Verdict) and outcome.hallucinated is None


def _left_open(sample: Sample, outcome: Outcome) -> Text | None:
    """Return what is shown for an item that nothing in the index can decide, and that was left open."""
    if sample.meta.get("undecidable") and _is_open(outcome):
        return Text("rightly left open: nothing in the index decides it", style="dim")
    return None


def _show_right(console: Console, samples: list[Sample], outcomes: dict[str, Outcome]) -> None:
    """Print how many items are right, those apart that nothing in the index can decide."""
    decided = [(s, outcomes[s.id]) for s in samples if not s.meta.get("undecidable")]
    others = [outcomes[s.id] for s in samples if s.meta.get("undecidable")]
    right = sum(isinstance(o, Verdict) and o.hallucinated is (s.label == "hallucinated") for s, o in decided)
    console.print(
        f"\n{right} of the {len(decided)} items that the index can decide are right ({right / len(decided):.0%}). "
        f"Nothing in it decides {len(others)} more, of which {sum(map(_is_open, others))} were rightly left open."
    )


def _show_scores(console: Console, samples: list[Sample], outcomes: dict[str, Outcome], summary: RunSummary) -> None:
    """Print the score of each group and of all items, and that of the rule on length."""
    rows: dict[str, list[tuple[bool, bool | None]]] = {}
    for sample in sorted(samples, key=_group):
        outcome = outcomes[sample.id]
        if sample.label is not None and isinstance(outcome, Verdict):
            rows.setdefault(_group(sample), []).append((sample.label == "hallucinated", outcome.hallucinated))
    scores = {group: score_labels(labels) for group, labels in rows.items()}
    show_scores(console, {**scores, "all": summary.score or Score()}, summary.length)
    if summary.failed:
        console.print(f"{summary.failed} items have no verdict and are not in the scores.", style="magenta")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KnowHaluError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")
