#!/usr/bin/env python
"""Fit the threshold at which a verifier highlights a word, and write marks.json into its folder."""

import argparse
import json
from pathlib import Path

from knowhalu.encoder.external import open_verifier
from knowhalu.encoder.verifier import DEFAULT_THRESHOLD
from knowhalu.errors import InputError
from knowhalu.requests import EntailmentPair
from knowhalu.training.data_files import run_script
from knowhalu.training.fit_rows import draw_wrong_claims
from knowhalu.training.fitting import ClaimWords, fit_span_threshold, replace_fitted_file, wrong_word_flags
from knowhalu.training.holdout import HeldOutRows

SPLIT = "held-out sources of the training files; no evaluation file was read"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder; marks.json is written into it")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: rows that overlap with them are left out")
    parser.add_argument("--claims", type=int, default=200, help="most wrong claims of a recipe")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all cores")
    args = parser.parse_args()
    path = args.folder / "marks.json"
    with replace_fitted_file(args.folder, path.name, {"border": DEFAULT_THRESHOLD}) as folder:
        backend = open_verifier(folder, threads=args.threads)
        parts = {}
        for name, claims in draw_wrong_claims(HeldOutRows(args.data, args.leave_out).of, args.claims):
            doubts = backend.unsupported_probabilities([EntailmentPair(e.premise, e.claim) for e in claims])
            read = [ClaimWords(wrong_word_flags(e.claim, e.wrong or ()), d) for e, d in zip(claims, doubts, strict=True) if d]
            if not read:
                raise InputError(
                    f"{args.folder}: the verifier was trained without token targets, so there is no threshold to fit"
                )
            parts[name] = read
        if not parts:
            raise InputError(f"{args.data}: no recipe has enough unseen wrong claims whose wrong words are known")
        fit = fit_span_threshold(parts) | {"split": SPLIT}
        (folder / path.name).write_text(json.dumps(fit, indent=1) + "\n", encoding="utf-8")
    threshold = fit["border"]
    for name, part in fit["fitted_on"].items():
        f1 = [part[f"f1_at_{t}"] for t in (DEFAULT_THRESHOLD, threshold)]
        print(f"{name:36} claims {part['claims']:4}  F1 {f1[0]:.3f} -> {f1[1]:.3f}")
    print(f"wrote {path}: threshold {threshold}")
    return 0


if __name__ == "__main__":
    run_script(main)
