"""Thresholds fitted on held-out rows: those of Factored Verification (section 2.3), and the one for highlighted words.

The rows come from held-out sources of the training files that overlap neither with what the verifier has seen nor with evaluation
files.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from knowhalu.encoder.verifier import DEFAULT_THRESHOLD
from knowhalu.methods.common.combine import COMBINATION_RULES, combine_probabilities, fit_theta
from knowhalu.text.overlap import coverage
from knowhalu.text.sentences import words
from knowhalu.training.data_files import TrainingRow, read_training_rows, text_of
from knowhalu.training.examples import SUPPORTED, CharSpan, TrainingExample
from knowhalu.training.holdout import HeldOutRows, RecipeRows, draw_examples
from knowhalu.training.judgment import average_accuracy
from knowhalu.training.recipes import CLAIMS_FILE, MODEL_PAIRS_FILE, RECIPES, SYNTHETIC_PAIRS_FILE, locate_file
from knowhalu.types import Label, Sample

MAX_TEXT_CLAIMS, TEXTS_PER_CLASS, MAX_SUMMARY_PAIRS = 5, 3, 60
"""Most claims of a composed text, texts of each class for a document, and most pairs of summaries of a file."""
SAME_CLAIM_OVERLAP = 0.7
"""Share of a claim's words in another claim from which the two are duplicates or edits of each other."""


class LabelledText(NamedTuple):
    """A text with its source, whether the whole text is supported, and its set."""

    sample: Sample
    faithful: bool
    origin: str


class ScoredText(NamedTuple):
    """P(supported) of every claim of a text, whether the whole text is supported, and its set."""

    claims: tuple[float, ...]
    faithful: bool
    origin: str


def draw_texts(held: HeldOutRows, seed: int = 0) -> Iterator[LabelledText]:
    """Yield texts of both classes in equal numbers: composed of written claims, one wrong or none, and pairs of summaries."""
    rng = random.Random(seed)
    for row in filter(_has_both, held.among(read_training_rows(locate_file(CLAIMS_FILE, held.data)))):
        for _ in range(TEXTS_PER_CLASS):
            for faithful in (True, False):
                yield LabelledText(
                    _sample(row["document"], _compose_text(row, faithful, rng)), faithful, "written claims, composed"
                )
    for file, name in ((SYNTHETIC_PAIRS_FILE, "FIB summaries, edited"), (MODEL_PAIRS_FILE, "FIB summaries, by models")):
        seen: set[str] = set()
        for row in held.among(read_training_rows(held.data / file)):
            if text_of(row) not in seen and len(seen) < MAX_SUMMARY_PAIRS:
                seen.add(text_of(row))
                yield LabelledText(_sample(row["document"], row["right_summary"]), True, name)
                yield LabelledText(_sample(row["document"], row["hallucinated_summary"]), False, name)


def _has_both(row: TrainingRow) -> bool:
    return len({claim["label"] == "supported" for claim in row["claims"]}) == 2


def _compose_text(row: TrainingRow, faithful: bool, rng: random.Random) -> str:
    """Compose a text of supported claims, one of them replaced by an unsupported one where `faithful` is False."""
    claims = rng.sample(row["claims"], len(row["claims"]))
    wrong = [c["text"] for c in claims if c["label"] != "supported"]
    chosen = [] if faithful else wrong[:1]
    size = rng.randint(1, MAX_TEXT_CLAIMS)
    for claim in (c["text"] for c in claims if c["label"] == "supported"):
        if len(chosen) < size and all(coverage(claim, other) < SAME_CLAIM_OVERLAP for other in chosen):
            chosen.append(claim)
    return " ".join(rng.sample(chosen, len(chosen)))


def _sample(document: str, response: str) -> Sample:
    return Sample.model_validate({"id": "-", "response": response, "documents": [document]})


def fit_thetas(rows: Sequence[ScoredText]) -> dict[str, Any]:
    """Return the content of `factored.json`: thetas, typical support, usual number of claims, and average accuracy.

    The typical support is the median over the claims of faithful texts, the number of claims the mean over all texts.
    """
    typical = round(median(p for r in rows if r.faithful for p in r.claims), 4)
    reference = round(fmean(len(r.claims) for r in rows), 2)
    values = [(combine_probabilities(r.claims, typical, reference), r.faithful) for r in rows]
    thetas = {rule: round(fit_theta((v[rule], f) for v, f in values), 4) for rule in COMBINATION_RULES}
    accuracy = {
        rule: round(average_accuracy((Label.INCORRECT if v[rule] < theta else Label.CORRECT, f) for v, f in values), 4)
        for rule, theta in thetas.items()
    }
    return {"thetas": thetas, "typical": typical, "reference": reference, "rows": len(rows), "average_accuracy": accuracy}


THRESHOLD_GRID = tuple(float(b) for b in np.round(np.arange(0.05, 0.96, 0.05), 2))
MIN_CLAIMS = 30
"""Fewest wrong claims of a recipe that is used."""
EXCLUDED_RECIPES = ("WiCE, unsupported tokens",)
"""Recipes whose held-out rows measure the highlighted words, and so cannot fit the threshold."""


class ClaimWords(NamedTuple):
    """The words of a wrong claim: which are wrong, and the probability that each is unsupported."""

    wrong: Sequence[bool]
    unsupported: Sequence[float]


def wrong_word_flags(claim: str, spans: Sequence[CharSpan]) -> list[bool]:
    """Return for every word of a claim whether a wrong span overlaps it."""
    return [any(a < w.end and w.start < b for a, b in spans) for w in words(claim)]


def draw_wrong_claims(rows: RecipeRows, limit: int) -> Iterator[tuple[str, list[TrainingExample]]]:
    """Yield every recipe with enough wrong claims whose wrong words are known, with up to `limit` of them."""
    for recipe in (r for r in RECIPES if r.name not in EXCLUDED_RECIPES):
        drawn = (e for e in draw_examples(recipe, rows) if e.target != SUPPORTED and e.wrong and not e.question)
        examples = list(islice(drawn, limit))
        if len(examples) >= MIN_CLAIMS:
            yield recipe.name, examples


def word_f1(claims: Sequence[ClaimWords], threshold: float) -> float:
    """Return F1 over the words of wrong claims, with words highlighted from `threshold` on."""
    hits = predicted = actual = 0
    for wrong, unsupported in claims:
        marked = [p >= threshold for p in unsupported]
        hits += sum(a and b for a, b in zip(wrong, marked, strict=True))
        predicted, actual = predicted + sum(marked), actual + sum(wrong)
    return 2 * hits / max(1, predicted + actual)


def fit_span_threshold(parts: Mapping[str, Sequence[ClaimWords]]) -> dict[str, Any]:
    """Return the content of `marks.json`: the threshold with the best mean F1 over the recipes, and the F1 of each."""
    best = max(
        THRESHOLD_GRID, key=lambda b: (np.mean([word_f1(claims, b) for claims in parts.values()]), -abs(b - DEFAULT_THRESHOLD))
    )
    measured = {
        name: {"claims": len(claims)} | {f"f1_at_{b}": round(word_f1(claims, b), 4) for b in (DEFAULT_THRESHOLD, best)}
        for name, claims in parts.items()
    }
    return {"border": best, "fitted_on": measured}
