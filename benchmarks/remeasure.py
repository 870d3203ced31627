#!/usr/bin/env python
"""Repeat all published measurements of the shipped verifier, one after the other; `verifier.py` compares it with earlier ones.

Completed steps are recorded in the folder `--work` under the hash of the verifier's files, so an interrupted run continues with
the next step, and another verifier starts from the first one. Afterwards run `scripts/write_card.py`, then
`benchmarks/publish.py`, which writes the tables into the pages.
"""

import argparse
import shlex
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

from knowhalu.encoder.options import PACKAGED_VERIFIER

HERE = Path(__file__).parent
STEPS = {
    "outcomes": "-m knowhalu eval all --data {data} -o {work}/runs",
    "quality": "{here}/quality.py --data {data} --runs {work}/runs",
    "pairs": "{here}/pairs.py --data {data} --runs {work}/runs",
    "report": "-m knowhalu report {work}/runs -o {work}/report.html --markdown docs/example_report.md --items 0"
    " --title 'Every evaluation set, with the encoder'",
    "reliability": "{here}/reliability.py --data {data} --runs {work}/runs",
    "relation": "{here}/relation.py --data {data} --runs {work}/runs",
    "judgment_parts": "{here}/judgment_parts.py --data {data} --training {training} --runs {work}/runs",
    "seen": "{here}/training_data.py seen --training {training} --limit 300",
    "failures": "{here}/failures.py",
    "failures_inference": "{here}/failures.py --set inference --out {here}/results/failures_inference.json",
    "off_target": "{here}/off_target.py --data {data} --training {training}",
    "spans": "{here}/spans.py --data {data} --training {training}",
    "padded_context": "{here}/padded_context.py --data {data} --rows 100",
    "calibration": "{here}/calibration.py --data {data} --work {work}/calibration",
    "methods": "{here}/methods.py --data {data} --work {work}/methods --plot docs/methods.svg",
    "revision": "{here}/revision.py --data {data}",
}


def seal(folder: Path) -> str:
    """Return the hash of a verifier's weights and judgments."""
    files = [folder / name for name in ("model.safetensors", "judgment.json", "factored.json")]
    return sha256(b"".join(sha256(f.read_bytes()).digest() for f in files)).hexdigest()[:12]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files, for held-out sources")
    parser.add_argument("--work", type=Path, default=Path(".runs/remeasure"), help="folder for outcomes and logs")
    parser.add_argument("--only", nargs="*", choices=STEPS, default=list(STEPS), help="some of the benchmarks")
    args = parser.parse_args()
    work = args.work.resolve() / seal(PACKAGED_VERIFIER)
    work.mkdir(parents=True, exist_ok=True)
    places = {"data": args.data.resolve(), "training": args.training.resolve(), "work": work, "here": HERE}
    for name in args.only:
        done, log = work / f"{name}.done", work / f"{name}.log"
        if done.exists():
            print(f"{name:20} done before")
            continue
        start = time.monotonic()
        with log.open("w", encoding="utf-8") as out:
            command = [sys.executable, *(part.format(**places) for part in shlex.split(STEPS[name]))]
            code = subprocess.run(command, cwd=HERE.parent, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
        print(f"{name:20} {'failed: see ' + str(log) if code else 'done'}  {(time.monotonic() - start) / 60:.1f} min", flush=True)
        if code:
            return code
        done.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
