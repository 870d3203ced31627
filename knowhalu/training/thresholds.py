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

from knowhalu.encoder.spans import DEFAULT_THRESHOLD
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
"""Claims of a composed text at most, texts of each class for a document, and pairs of summaries of each file."""
SAME_CLAIM_OVERLAP = 0.7
"""Share of a claim's words in another one from which the two say the same, or one is the edited other."""


class LabelledText(NamedTuple):
    """A text with its source, whether all of it is supported, and the set it comes from."""

    sample: Sample
    faithful: bool
    origin: str


class ScoredText(NamedTuple):
    """P(supported) of all claims of a text, whether all of it is supported, and the set it comes from."""

    claims: tuple[float, ...]
    faithful: bool
    origin: str


def draw_texts(held: HeldOutRows, seed: int = 0) -> Iterator[LabelledText]:
    """Draw texts in equal numbers of both classes: composed of written claims, one wrong or none, and pairs of summaries."""
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
    """Put together as many claims for both classes: all of them supported, or one that is not."""
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
    """Return what `factored.json` holds: thetas, the typical support and the usual number of claims, and how well they part.

    The typical support is the median over the claims of faithful texts, the number of claims the mean over all texts.
    """
    typical = round(median(p for r in rows if r.faithful for p in r.claims), 4)
    reference = round(fmean(len(r.claims) for r in rows), 2)
    values = [(combine_probabilities(r.claims, typical, reference), r.faithful) for r in rows]
    thetas = {rule: round(fit_theta((v[rule], f) for v, f in values), 4) for rule in COMBINATION_RULES}
    told = {
        rule: round(average_accuracy((Label.INCORRECT if v[rule] < theta else Label.CORRECT, f) for v, f in values), 4)
        for rule, theta in thetas.items()
    }
    return {"thetas": thetas, "typical": typical, "reference": reference, "rows": len(rows), "average_accuracy": told}


THRESHOLD_GRID = tuple(float(b) for b in np.round(np.arange(0.05, 0.96, 0.05), 2))
MIN_CLAIMS = 30
"""Claims from which a part is used."""
EXCLUDED_RECIPES = ("WiCE, unsupported tokens",)
"""Parts on whose held-out rows marks are measured, and therefore not fitted."""


class ClaimWords(NamedTuple):
    """The words of a wrong claim: which are wrong, and how probably each is not borne out."""

    wrong: Sequence[bool]
    doubts: Sequence[float]


def wrong_word_flags(claim: str, stretches: Sequence[CharSpan]) -> list[bool]:
    """Tell for every word of a claim whether a wrong stretch touches it."""
    return [any(a < w.end and w.start < b for a, b in stretches) for w in words(claim)]


def draw_wrong_claims(rows: RecipeRows, limit: int) -> Iterator[tuple[str, list[TrainingExample]]]:
    """Yield the name of every part that has enough wrong claims with known words, and up to `limit` of them."""
    for recipe in (r for r in RECIPES if r.name not in EXCLUDED_RECIPES):
        drawn = (e for e in draw_examples(recipe, rows) if e.target != SUPPORTED and e.wrong and not e.question)
        found = list(islice(drawn, limit))
        if len(found) >= MIN_CLAIMS:
            yield recipe.name, found


def word_f1(claims: Sequence[ClaimWords], border: float) -> float:
    """Return F1 over the words of wrong claims, where those from `border` on are marked."""
    hits = said = there = 0
    for wrong, doubts in claims:
        marked = [p >= border for p in doubts]
        hits += sum(a and b for a, b in zip(wrong, marked, strict=True))
        said, there = said + sum(marked), there + sum(wrong)
    return 2 * hits / max(1, said + there)


def fit_span_threshold(parts: Mapping[str, Sequence[ClaimWords]]) -> dict[str, Any]:
    """Choose the border with the best mean F1 over the parts, and tell what every part has there and at `DEFAULT_THRESHOLD`."""
    best = max(
        THRESHOLD_GRID, key=lambda b: (np.mean([word_f1(claims, b) for claims in parts.values()]), -abs(b - DEFAULT_THRESHOLD))
    )
    measured = {
        name: {"claims": len(claims)} | {f"f1_at_{b}": round(word_f1(claims, b), 4) for b in (DEFAULT_THRESHOLD, best)}
        for name, claims in parts.items()
    }
    return {"border": best, "fitted_on": measured}
