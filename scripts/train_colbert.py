#!/usr/bin/env python
"""Train the token encoder for late interaction from all-MiniLM-L6-v2 within a budget; the same command resumes a stopped run.

Learns from questions on SQuAD's training articles and from SciFact's training claims. The sets that it is measured on
(SQuAD dev, SciFact dev, and all others) are never trained on.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from knowhalu.encoder.embedder import MiniLMTokenEncoder, packaged_minilm_folder
from knowhalu.index.passages import PassageList
from knowhalu.training.data_files import parse_budget, read_training_rows, run_script
from knowhalu.training.late import (
    LateProgress,
    LateSettings,
    LateTrainer,
    RetrievalQuestion,
    evaluate_retrieval,
    mine_hard_negatives,
    read_corpus,
)

LEARNED = {"squad_sentence_retrieval": "test", "scifact_retrieval": "train"}
"""Each set and its training split. The `test` split of the first comes from SQuAD's training articles."""
MEASURED = {"squad_sentence_retrieval": "dev", "scifact_retrieval": "dev"}


def split_of(data: Path, name: str, split: str) -> list[dict[str, Any]]:
    """Return the queries of one split."""
    return [row for row in read_training_rows(data / f"{name}.jsonl.gz") if row.get("split") == split]


def corpus_of(data: Path, name: str) -> PassageList:
    """Return the passages of a set."""
    return read_corpus(data / f"{name}.corpus.jsonl.gz")


def unmeasured(corpus: PassageList, measured: list[dict[str, Any]]) -> PassageList:
    """Remove the relevant passages of the evaluation split, so that they are not used as negatives either."""
    right = {str(name) for row in measured for name in row["positives"]}
    return PassageList(p for p in corpus if p.id not in right)


def without_measured(rows: list[dict[str, Any]], measured: list[dict[str, Any]], corpus: PassageList) -> list[dict[str, Any]]:
    """Remove queries that also occur in the evaluation split, or whose relevant passage has the same text there."""
    texts = {p.id: " ".join(p.text.lower().split()) for p in corpus}
    measured_queries = {" ".join(row["query"].lower().split()) for row in measured}
    right = {texts[str(name)] for row in measured for name in row["positives"] if str(name) in texts}
    return [
        row
        for row in rows
        if " ".join(row["query"].lower().split()) not in measured_queries
        and not any(texts.get(str(name)) in right for name in row["positives"])
    ]


def gathered(data: Path) -> list[list[RetrievalQuestion]]:
    """Return the training questions of every set, with mined hard negatives."""
    groups = []
    for name, split in LEARNED.items():
        rows, corpus, measured = split_of(data, name, split), corpus_of(data, name), split_of(data, name, MEASURED[name])
        learned, corpus = without_measured(rows, measured, corpus), unmeasured(corpus, measured)
        groups.append(mine_hard_negatives(learned, corpus))
        print(f"{name}: {len(learned)} of {len(rows)} questions of {split!r}, {len(corpus)} passages", flush=True)
    return groups


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with the files of {', '.join(LEARNED)}")
    parser.add_argument("--out", type=Path, default=Path(".runs/late"), help="folder for checkpoints and the result")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=partial(parse_budget, float), default=0.0)
    budget.add_argument("--steps", type=partial(parse_budget, int), default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=LateSettings.rate)
    parser.add_argument("--layers", type=int, default=LateSettings.layers, help="number of top layers of MiniLM to train")
    parser.add_argument("--temperature", type=float, default=LateSettings.temperature)
    parser.add_argument("--queries", type=int, default=500, help="queries of each set for the final evaluation; 0: none")
    args = parser.parse_args()

    settings = LateSettings(
        minutes=args.minutes, steps=args.steps, seed=args.seed, rate=args.rate, layers=args.layers, temperature=args.temperature
    )
    base = packaged_minilm_folder()
    trainer = LateTrainer(base, gathered(args.data), args.out, settings)

    def report(p: LateProgress) -> None:
        if p.step % 50 == 0:
            print(f"step {p.step}  {p.share(settings):6.1%}  {p.step / p.seconds:.1f} steps/s  loss {p.loss:.4f}", flush=True)

    model = trainer.run(report)
    folder = args.out / "model"
    model.save(folder, base, trainer.changed)
    print(f"wrote {folder}", flush=True)
    scores = {}
    for name, split in MEASURED.items() if args.queries else ():
        rows = split_of(args.data, name, split)
        rows = rows[:: max(1, len(rows) // args.queries)]
        score = evaluate_retrieval(MiniLMTokenEncoder(folder), corpus_of(args.data, name), rows)
        scores[name] = {"split": split, "queries": len(rows), **score._asdict()}
        print(f"{name} {split}: R@1 {score.recall1:.3f}  R@10 {score.recall10:.3f}  MRR {score.mrr:.3f}", flush=True)
    (args.out / "evaluation.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    run_script(main)
