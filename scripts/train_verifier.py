#!/usr/bin/env python
"""Train the verifier from all-MiniLM-L6-v2 or another encoder within a budget; the same command resumes a stopped run."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from knowhalu.encoder.embedder import packaged_minilm_folder
from knowhalu.encoder.verifier import Verifier
from knowhalu.errors import InputError
from knowhalu.training.card import write_card
from knowhalu.training.data_files import Leakage, parse_budget, run_script
from knowhalu.training.holdout import HeldOutRows, score_recipes, scores_as_markdown
from knowhalu.training.loop import Trainer, TrainProgress, TrainSettings
from knowhalu.training.recipes import FILES, RECIPES, check_added


def whole(file: str) -> str:
    """Return the absolute path of a file, which identifies it for a resumption."""
    return str(Path(file).resolve())


def own_rows(text: str) -> tuple[str, float]:
    """Parse FILE=SHARE and validate the file."""
    file, _, share = text.rpartition("=")
    try:
        part = float(share)
    except ValueError:
        part = 0.0
    if not file or not 0 < part < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give FILE=SHARE, the share of all draws between 0 and 1: mine.jsonl=0.2")
    try:
        check_added(Path(file))
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return whole(file), part


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {', '.join(FILES)}")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: training sources that overlap are left out")
    parser.add_argument("--base", type=Path, help="encoder or verifier to start from (default: the packaged MiniLM)")
    parser.add_argument("--out", type=Path, default=Path(".runs/verifier"), help="folder for checkpoints and the result")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=partial(parse_budget, float), default=0.0)
    budget.add_argument("--tokens", type=partial(parse_budget, int), default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--warmup", type=float, default=0.03, help="share of the budget in which the rate rises")
    parser.add_argument("--floor", type=float, default=0.05, help="share of the rate that remains at the end")
    parser.add_argument("--long", type=float, default=0.0, help="share of the premises to fill up to between 320 and 512 tokens")
    parser.add_argument("--rank", type=int, default=32, help="rank of the stored change against the base (0: none)")
    parser.add_argument("--continue-from", type=Path, metavar="FILE", help="change.safetensors of a run on another machine")
    parser.add_argument(
        "--weights-from", type=Path, metavar="FILE", help="change.safetensors whose weights a new run begins with"
    )
    parser.add_argument("--checkpoints", type=float, default=5.0, help="minutes between checkpoints")
    parser.add_argument("--changes", type=float, default=20.0, help="minutes between stored changes")
    parser.add_argument("--snapshots", type=float, default=0.0, help="million tokens between models for the learning curve")
    parser.add_argument("--unlicensed", action="store_true", help="also train on sets without a stated licence, to measure them")
    parser.add_argument("--smoothing", type=float, default=0.0, help="label smoothing")
    parser.add_argument("--focus", type=float, default=0.0, help="exponent of the focal loss")
    parser.add_argument("--layer-decay", type=float, default=1.0, help="rate of a layer relative to that of the layer above")
    parser.add_argument("--layers", type=int, default=0, help="keep this many lower layers of the base (default: all)")
    parser.add_argument("--portion", type=float, default=1.0, help="share of the sources to train on, 0 to 1")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--vary", type=float, default=0.0, help="probability of another form of a labelled row, 0 to 1")
    parser.add_argument("--marking", type=float, default=0.5, help="weight of the token loss")
    parser.add_argument("--without", action="append", default=[], metavar="RECIPE", help="leave a recipe out (see recipes.py)")
    parser.add_argument(
        "--mined", type=whole, action="append", default=[], metavar="FILE", help="examples of scripts/mine_examples.py"
    )
    parser.add_argument(
        "--add",
        dest="added",
        type=own_rows,
        action="append",
        default=[],
        metavar="FILE=SHARE",
        help="your labelled rows, JSON lines",
    )
    return parser.parse_args()


def settings_of(args: argparse.Namespace) -> TrainSettings:
    """Return the settings of the run from the options of the same names."""
    given = {f.name: getattr(args, f.name) for f in fields(TrainSettings) if f.name in args}
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return TrainSettings(**values)


def reporter(trainer: Trainer, million: float) -> Callable[[TrainProgress], None]:
    """Print a line every hundred steps, and save a model every `--snapshots` million tokens."""
    every = int(1e6 * million)
    saved = trainer.progress.tokens // every if every else 0

    def report(p: TrainProgress) -> None:
        nonlocal saved
        if p.step % 100 == 0:
            share, speed = p.share(trainer.settings), p.tokens / p.seconds
            print(f"step {p.step}  {share:6.1%}  tokens {p.tokens / 1e6:.2f}M  {speed:,.0f}/s  loss {p.loss:.4f}", flush=True)
        if every and p.tokens // every > saved:
            saved = p.tokens // every
            name = trainer.folder / "snapshots" / f"{saved * million:g}M"
            if trainer.rank:
                trainer.save_change(name.with_name(f"{name.name}.safetensors"))
            else:
                trainer.model.save(name, trainer.vocabulary.tokenizer)

    return report


def finish(trainer: Trainer, model: Verifier, held: HeldOutRows) -> None:
    """Write the model, its scores on held-out sources, and its card."""
    folder, parts = trainer.folder / "model", []
    model.save(folder, trainer.vocabulary.tokenizer)
    if trainer.leakage is not None:
        sources, claims = trainer.leakage.left_out
        print(f"left out because they overlap with evaluation files: {sources} sources, {claims} claims", flush=True)
    without = trainer.settings.without
    for part in score_recipes(model, trainer.vocabulary, held.of, recipes=[r for r in RECIPES if r.name not in without]):
        print(f"held out  {part.name:36} {part.examples:4}  AUC {part.auc:.3f}  accuracy {part.accuracy:.3f}", flush=True)
        parts.append(part)
    (trainer.folder / "heldout.md").write_text(scores_as_markdown(parts))
    write_card(folder, trainer.settings, trainer.progress, scores_as_markdown(parts))
    print(f"wrote {folder}; next: scripts/fit_judgment.py {folder}")


def main() -> None:
    """Run the command."""
    args = options()
    leakage = Leakage.of_folder(args.leave_out) if args.leave_out else None
    rank = 0 if args.layers else args.rank  # the change of an encoder that was cut cannot be merged with its base
    base = args.base or packaged_minilm_folder()
    starts = {"continue_from": args.continue_from, "weights_from": args.weights_from}
    trainer = Trainer(base, args.data, args.out, settings_of(args), leakage, rank=rank, **starts)
    report = reporter(trainer, args.snapshots)
    model = trainer.run(report, every=60 * args.checkpoints, changes=60 * args.changes)
    finish(trainer, model, HeldOutRows(args.data, args.leave_out))


if __name__ == "__main__":
    run_script(main)
