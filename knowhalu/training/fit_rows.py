"""Held-out rows to fit on: claims and answers, texts of several claims, and wrong claims with their wrong words.

All come from held-out sources that overlap neither with what the verifier has seen nor with evaluation files.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from knowhalu.methods.common.evidence import META_CONTEXT
from knowhalu.methods.knowhalu.encoder import RULE_CHECKED_TYPES
from knowhalu.requests import EntailmentPair
from knowhalu.text.overlap import coverage
from knowhalu.text.questions import expected_answer_type
from knowhalu.training.data_files import TrainingRow, read_training_rows, text_of
from knowhalu.training.edits import detokenize
from knowhalu.training.examples import NEUTRAL, SUPPORTED, TrainingExample
from knowhalu.training.holdout import HeldOutRows, RecipeRows, draw_examples
from knowhalu.training.recipes import (
    ANSWERS_FILE,
    CLAIMS_FILE,
    INFERENCE_FILE,
    MIX_FILE,
    MODEL_PAIRS_FILE,
    RECIPES,
    SYNTHETIC_PAIRS_FILE,
    Recipe,
    locate_file,
)
from knowhalu.training.scenarios import draw_values, fill
from knowhalu.types import Sample

MAX_CLAIM_WORDS = 30
"""Most words of a claim that is judged in one piece."""
MAX_WRITTEN = 700
"""Most written claims, and most written answers, to sample."""
SET_SAMPLING = {
    "fever_dev_claims": (400, 1.0), "fm2": (150, 1.0), "wice_claim_oracle": (130, 0.3), "scifact": (90, 1.0),
    "begin": (100, 0.3), "nli_mnli10k_taxinli": (150, 0.6), "nli_cad_snli": (150, 0.6),
}  # fmt: skip
"""Most rows of each set and its weight in the fit, which is lower where copied wording reveals the label."""
MAX_TEXT_CLAIMS, TEXTS_PER_CLASS, MAX_SUMMARY_PAIRS = 5, 3, 60
"""Most claims of a composed text, texts of each class for a document, and most pairs of summaries of a file."""
SAME_CLAIM_OVERLAP = 0.7
"""Share of a claim's words in another claim from which the two are duplicates or edits of each other."""
SCENARIOS = ("written conversations", "written texts with slots", "written answers with slots")
"""Recipes of scenarios, whose slots hold other names and values for every statement."""
MIN_CLAIMS = 30
"""Fewest wrong claims of a recipe that is used."""
EXCLUDED_RECIPES = ("WiCE, unsupported tokens",)
"""Recipes whose held-out rows measure the highlighted words, and so cannot fit the threshold."""


@dataclass(frozen=True)
class FitRow:
    """A sample with its gold label, the set it comes from and that set's weight."""

    sample: Sample
    supported: bool
    origin: str
    weight: float


def _document_sample(document: str, response: str) -> Sample:
    return Sample.model_validate({"id": "-", "response": response, "documents": [document]})


def _sample(source: str, claim: str, question: str | None = None, context: str = "") -> Sample:
    long = len(source.split()) > 120
    where = {"documents": [source]} if long and question is None else {"knowledge": [source]}
    meta = {META_CONTEXT: context} if context else {}
    return Sample.model_validate({"id": "-", "response": claim, "question": question, "meta": meta, **where})


def claim_rows(held: HeldOutRows, seed: int = 0) -> Iterator[FitRow]:
    """Yield held-out claims: labelled ones, summaries, own sentences of documents and the written claims."""
    labelled = list(_labelled(held))
    yield from labelled
    yield from _swap_evidence(labelled)
    for name in ("FIB summaries, edited", "FIB summaries, by models", "FIB documents, own sentences", "Wikipedia, own sentences"):
        yield from _recipe_rows(name, held, seed)
    yield from _written_rows(read_held_rows(held, CLAIMS_FILE), "written claims", seed)
    yield from _written_rows(read_held_rows(held, INFERENCE_FILE), "written inference", seed, weight=0.6, most=MAX_WRITTEN // 2)
    on_passages = "written claims on real passages"
    yield from _written_rows(held.of(_recipe(on_passages)), on_passages, seed)
    yield from (r for r in _scenario_rows(held, seed) if r.sample.question is None)


def _scenario_rows(held: HeldOutRows, seed: int) -> Iterator[FitRow]:
    """Yield every statement of the held-out scenarios, with values drawn for each, on the text as it is laid out."""
    for name in SCENARIOS:
        rng = random.Random(f"{seed}:{name}")
        for row in held.of(_recipe(name)):
            for statement in row["claims"]:
                values = draw_values(row["slots"], rng)
                text, claim, question, before = (
                    fill(template, values, rng) if template else ""
                    for template in (row["text"], statement["text"], statement.get("question"), statement.get("before"))
                )
                yield FitRow(_sample(text, claim, question or None, before), statement["label"] == "supported", name, 1.0)


def read_held_rows(held: HeldOutRows, file: str) -> Iterator[TrainingRow]:
    """Yield the held-out rows of a file, of this repository or of the training data."""
    return held.among(read_training_rows(locate_file(file, held.data)))


def _recipe(name: str) -> Recipe:
    return next(r for r in RECIPES if r.name == name)


def _written_rows(
    rows: Iterable[TrainingRow],
    origin: str,
    seed: int,
    *,
    weight: float = 1.0,
    most: int = MAX_WRITTEN,
    max_words: float = MAX_CLAIM_WORDS,
) -> list[FitRow]:
    """Sample at most `most` of the claims, or answers with their questions, that were written; refusals are left out."""
    written = [
        FitRow(
            _sample(row.get("document") or row["knowledge"], item["text"], row.get("question")),
            item["label"] in ("supported", "correct"), origin, weight,
        )
        for row in rows
        for item in row.get("claims") or row["answers"]
        if item["label"] != "refusal" and len(item["text"].split()) <= max_words
    ]  # fmt: skip
    return random.Random(seed).sample(written, min(most, len(written)))


def _labelled(held: HeldOutRows) -> Iterator[FitRow]:
    """Yield labelled claims by `SET_SAMPLING`."""
    taken: Counter[str] = Counter()
    for row in held.among(r for r in read_training_rows(held.data / MIX_FILE) if r["set"] in SET_SAMPLING):
        name = row["set"]
        most, weight = SET_SAMPLING[name]
        if taken[name] < most and len(row["claim"].split()) <= MAX_CLAIM_WORDS:
            taken[name] += 1
            yield FitRow(_sample(row["source"], row["claim"]), row["label"] == "supported", name, weight)


def _swap_evidence(rows: list[FitRow]) -> Iterator[FitRow]:
    """Yield encyclopedic claims with the evidence of another claim that shares words, as a search without a hit returns."""
    known = [r for r in rows if r.origin in ("fever_dev_claims", "fm2") and r.sample.knowledge]
    for i, row in enumerate(known[::2]):
        others = [known[(2 * i + d) % len(known)].sample.knowledge[0] for d in range(1, 60)]
        best = max(others, key=lambda text: coverage(row.sample.response, text))
        if coverage(row.sample.response, best) <= 0.6:
            yield FitRow(_sample(best, row.sample.response), False, "other evidence", 0.6)


def _recipe_rows(name: str, held: HeldOutRows, seed: int, weight: float = 1.0, limit: int = 250) -> Iterator[FitRow]:
    """Yield rows of held-out documents as the training makes them, with the whole document where it is unchanged."""
    recipe, rng = _recipe(name), random.Random(f"{seed}:{name}")
    rows = list(held.of(recipe))
    rng.shuffle(rows)
    for row, other in islice(pairwise(rows), limit):
        example = recipe.make(row, other, rng)
        whole = detokenize(text_of(row))
        source = example.premise if example.target == NEUTRAL or example.premise not in whole else whole
        if len(example.claim.split()) <= MAX_CLAIM_WORDS:
            yield FitRow(_sample(source, example.claim, example.question or None), example.target == SUPPORTED, name, weight)


def answer_rows(held: HeldOutRows, validation: Path | None = None, seed: int = 0) -> Iterator[FitRow]:
    """Yield held-out answers, written and made, and the validation split (never the test split) of the paper's answers."""
    yield from (r for r in _recipe_rows("Wikipedia, questions on details", held, seed, 0.3) if r.sample.question)
    yield from _written_rows(read_held_rows(held, ANSWERS_FILE), "written answers", seed, max_words=math.inf)
    on_passages = "written answers on real passages"
    yield from _written_rows(held.of(_recipe(on_passages)), on_passages, seed)
    yield from (r for r in _scenario_rows(held, seed) if r.sample.question)
    if validation is not None:
        for row in islice((r for r in read_training_rows(validation) if r["split"] == "val"), 100):
            for key, supported in (("right_answer", True), ("hallucinated_answer", False)):
                yield FitRow(_sample(row["knowledge"], row[key], row["question"]), supported, "KnowHalu QA, validation", 1.0)


def off_target_pairs(held: HeldOutRows, seed: int = 0) -> Iterator[tuple[EntailmentPair, bool]]:
    """Yield held-out answers as the off-target check reads them, without a source, and whether each is off target."""
    for name in ("Wikipedia, questions answered or evaded", "written answers, delivered or evaded"):
        recipe = _recipe(name)
        for row in held.of(recipe):
            for draw in range(6):
                example = recipe.make(row, row, random.Random(f"{seed}:{text_of(row)}:{draw}"))
                if not example.premise and expected_answer_type(example.question) not in RULE_CHECKED_TYPES:
                    yield EntailmentPair("", example.claim, example.question), example.target != SUPPORTED


class LabelledText(NamedTuple):
    """A text with its source, whether the whole text is supported, and its set."""

    sample: Sample
    faithful: bool
    origin: str


def draw_texts(held: HeldOutRows, seed: int = 0) -> Iterator[LabelledText]:
    """Yield texts of both classes in equal numbers: composed of written claims, one wrong or none, and pairs of summaries."""
    rng = random.Random(seed)
    for row in read_held_rows(held, CLAIMS_FILE):
        if len({claim["label"] == "supported" for claim in row["claims"]}) == 2:
            for faithful in (True, False) * TEXTS_PER_CLASS:
                text = _compose_text(row, faithful, rng)
                yield LabelledText(_document_sample(row["document"], text), faithful, "written claims, composed")
    for file, name in ((SYNTHETIC_PAIRS_FILE, "FIB summaries, edited"), (MODEL_PAIRS_FILE, "FIB summaries, by models")):
        seen: set[str] = set()
        for row in held.among(read_training_rows(held.data / file)):
            if text_of(row) not in seen and len(seen) < MAX_SUMMARY_PAIRS:
                seen.add(text_of(row))
                yield LabelledText(_document_sample(row["document"], row["right_summary"]), True, name)
                yield LabelledText(_document_sample(row["document"], row["hallucinated_summary"]), False, name)


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


def draw_wrong_claims(rows: RecipeRows, limit: int) -> Iterator[tuple[str, list[TrainingExample]]]:
    """Yield every recipe with enough wrong claims whose wrong words are known, with up to `limit` of them."""
    for recipe in (r for r in RECIPES if r.name not in EXCLUDED_RECIPES):
        drawn = (e for e in draw_examples(recipe, rows) if e.target != SUPPORTED and e.wrong and not e.question)
        examples = list(islice(drawn, limit))
        if len(examples) >= MIN_CLAIMS:
            yield recipe.name, examples
