"""Write the model card: training data, licences, settings and results of a verifier."""

import json
import math
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from safetensors import safe_open

from knowhalu.encoder.verifier import DEFAULT_THRESHOLD
from knowhalu.training.loop import TrainProgress, TrainSettings

_UNLICENSED_EXCLUDED = (
    "Sets that state no licence were left out, although they are large (docs/training_log.md measures what they would bring). "
)
_UNLICENSED_INCLUDED = "Some of these parts state no licence: look whether you may use what was trained on them. "
_TEMPLATE = Path(__file__).with_name("card.md")


def write_card(
    folder: Path, settings: TrainSettings, progress: TrainProgress, results: str, *, note: str = "", failures: str = ""
) -> None:
    """Write `README.md` into a verifier's folder, from the records of its run and the files of the folder.

    `failures` is a section on its errors, as Markdown.
    """
    total = sum(r.share for r in settings.recipes)
    parts = "\n".join(f"| {r.name} | {r.share / total:.0%} | {r.licence} |" for r in settings.recipes)
    text = _TEMPLATE.read_text(encoding="utf-8").format(
        sizes=_sizes(folder),
        settings=f"{note} {_settings(settings, progress)}".strip(),
        parts=parts,
        unlicensed=_UNLICENSED_INCLUDED if settings.unlicensed else _UNLICENSED_EXCLUDED,
        marking=settings.marking,
        marks=_span_threshold_text(folder / "marks.json"),
        weights=_weights(folder / "judgment.json"),
        reliability=_reliability(folder / "judgment.json"),
        results=results,
        failures=failures,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _sizes(folder: Path) -> str:
    shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with safe_open(folder / "model.safetensors", "pt") as file:
        weights = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - no mapping
    return f"{weights / 1e6:.1f} million parameters ({shape['num_hidden_layers']} layers, hidden size {shape['hidden_size']})"


def _settings(settings: TrainSettings, progress: TrainProgress) -> str:
    words = "frozen" if settings.freeze_words else "trained"
    portion = "" if settings.portion == 1.0 else f" from {settings.portion:.0%} of the sources"
    forms = f", rows in other forms with probability {settings.vary:g}" if settings.vary else ""
    return (
        f"{progress.tokens / 1e6:.1f} million tokens (padded){portion} in {progress.step:,} steps of about 3,072, in "
        f"{progress.seconds / 60:.0f} minutes; "
        f"bf16 autocast where the hardware has it, AdamW at {settings.rate:g} with linear warm-up and decay, dropout "
        f"{settings.dropout}{forms}, word embeddings {words}, seed {settings.seed}; final training loss {progress.loss:.3f}. "
        "Written by `scripts/train_verifier.py`."
    )


def _weights(path: Path) -> str:
    """Return the table of weights, thresholds and calibration for each task and form."""
    if not path.exists():
        return "(not fitted yet: run scripts/fit_judgment.py)"
    judgment = json.loads(path.read_text(encoding="utf-8"))
    fits, measured = judgment["weights"], judgment.get("reliability", {})
    weights = {name: [fit["weights"].get(name) for fit in fits.values()] for fit in fits.values() for name in fit["weights"]}
    table = {
        "feature": fits,
        **{name: ["" if v is None else f"{v:+.2f}" for v in values] for name, values in weights.items()},
        "decision threshold": [f"{fit['cut'] - fit['bias']:+.2f}" for fit in fits.values()],
        "temperature": [f"{1 / fit.get('slope', 1.0):.2f}" for fit in fits.values()],
        "ECE without it": [f"{measured[n]['ece_unscaled']:.3f}" if n in measured else "" for n in fits],
        "ECE": [f"{measured[n]['ece']:.3f}" if n in measured else "" for n in fits],
    }
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in table.items()]
    lines.insert(1, "|---" * (len(fits) + 1) + "|")
    deltas = ", ".join(f"{task}: delta1 {d[0]}, delta2 {d[1]}" for task, d in judgment["thresholds"].items())
    evades = f" An answer evades from {judgment['evades']} on." if judgment.get("evades") is not None else ""
    return "\n".join(lines) + f"\n\nAggregation (quantile grid on the same rows): {deltas}.{evades}"


def _span_threshold_text(path: Path) -> str:
    if not path.exists():
        return f"A word is highlighted from {DEFAULT_THRESHOLD:g} on (no other threshold was fitted: scripts/fit_marks.py)."
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    parts = ", ".join(f"{name} ({part['claims']})" for name, part in data["fitted_on"].items())
    threshold = data["border"]
    return (
        f"A word is highlighted from {threshold:g} on, where the mean F1 over the words of wrong claims is best; the claims come "
        f"from {data['split']}: {parts}. Reported probabilities are shifted so that the threshold is one half."
    )


def _reliability(path: Path) -> str:
    """Return the table of predicted probabilities and observed shares of held-out rows in bins."""
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = {name.split(".")[0]: part for name, part in data.get("reliability", {}).items() if name.endswith(".unstructured")}
    if not known:
        return ""
    lines = [
        "", "P(hallucinated) of the same rows in bins, by sentences: rows, mean predicted probability, and observed share of",
        "hallucinated ones (docs/reliability.svg shows it with the test sets).", "",
        f"| {' | '.join(f'{name}s | predicted | observed' for name in known)} |", f"|{'---|' * 3 * len(known)}",
    ]  # fmt: skip
    for bins in zip_longest(*(part["bins"] for part in known.values())):
        cells = (f"{b[0]} | {b[1]:.3f} | {b[2]:.3f}" if b else " |  | " for b in bins)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
