"""Evidence features: what a source says of a claim, word by word, number by number, name by name."""

import math
from typing import NamedTuple

from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, found_share, text_facts
from knowhalu.text.quantities import mismatched_quantity_share, missing_date_share
from knowhalu.text.sentences import content_words

MAX_LOGIT = 6.0
CONTRADICTION_LOGIT = 1.0
"""Log-odds from which a contradiction is sure: of those that are surer still, hardly one is supported."""


def logit(p: float) -> float:
    """Return the log-odds, cut off at `MAX_LOGIT`."""
    p = min(max(p, 1e-6), 1 - 1e-6)
    return max(-MAX_LOGIT, min(MAX_LOGIT, math.log(p / (1 - p))))


class VerifierScores(NamedTuple):
    """What the verifier says of a claim: against all evidence together, and against each sentence (texts beside).

    `weakest` is the best support of the claim's least supported statement, `nearest` what the sentence nearest in words says.
    """

    joint: Probabilities
    single: tuple[Probabilities, ...]
    sentences: tuple[str, ...]
    weakest: float
    nearest: Probabilities


FEATURES = frozenset(
    """
    joint_supported joint_contradicted sure_contradicted weakest_supported nearest_supported nearest_contradicted
    best_contradicted coverage coverage_open coverage_best pairs numbers_missing numbers_elsewhere dates_missing counts_missing
    names_missing negation_differs negated on_topic asked_supported asked_contradicted asked_best fresh_covered entity_verbatim
    question_near_answer
    """.split()
)
"""The features that a judgment can weigh: those of a claim, and from `asked_supported` on those of an answer."""


def claim_features(claim: str, reading: VerifierScores, source: str) -> dict[str, float]:
    """Return the features of a plain claim: verifier log-odds, and how much of the claim stands in the source.

    `coverage_open` is coverage as far as nothing is contradicted: where roles are exchanged or a "not" is put in, all words are
    there and say nothing.
    """
    wanted, all_there, covered = text_facts(claim), text_facts(source), coverage(claim, source)
    covers = [coverage(claim, s) for s in reading.sentences] or [0.0]
    best = max(range(len(covers)), key=covers.__getitem__)
    near = text_facts(reading.sentences[best]) if reading.sentences else text_facts("")
    relevant = [p.contradicted for p, c in zip(reading.single, covers, strict=False) if c >= 0.3] or [0.0]
    present, differs = frozenset(all_there.content), (wanted.negations > 0) != (near.negations > 0)
    return {
        "joint_supported": logit(reading.joint.supported),
        "joint_contradicted": logit(reading.joint.contradicted),
        "sure_contradicted": max(0.0, logit(reading.joint.contradicted) - CONTRADICTION_LOGIT),
        "weakest_supported": logit(reading.weakest),
        "nearest_supported": logit(reading.nearest.supported),
        "nearest_contradicted": logit(reading.nearest.contradicted),
        "best_contradicted": logit(max(relevant)),
        "coverage": covered,
        "coverage_open": covered * (1 - reading.joint.contradicted),
        "coverage_best": covers[best],
        "pairs": len(wanted.pairs & all_there.pairs) / len(wanted.pairs) if wanted.pairs else covered,
        "numbers_missing": 1 - found_share(set(all_there.numbers), wanted.numbers),
        "numbers_elsewhere": float(
            bool(wanted.numbers) and wanted.numbers <= all_there.numbers and not wanted.numbers <= near.numbers
        ),
        "dates_missing": missing_date_share(claim, source),
        "counts_missing": mismatched_quantity_share(claim, source),
        "names_missing": 1 - found_share(set(present), wanted.names),
        "negation_differs": float(differs),
        "negated": max(0.0, logit(reading.joint.contradicted)) if differs else 0.0,
    }


def answer_features(question: str, answer: str, entity: str, asked: VerifierScores, source: str) -> dict[str, float]:
    """Return what is added for an answer: the verifier with the question, and where the new words of the answer stand."""
    known = set(content_words(question))
    fresh = {w for w in content_words(answer) if w not in known}
    holding = [s for s in asked.sentences if fresh and fresh <= set(text_facts(s).content)]
    return {
        "asked_supported": logit(asked.joint.supported),
        "asked_contradicted": logit(asked.joint.contradicted),
        "asked_best": logit(max((p.supported for p in asked.single), default=0.0)),
        "fresh_covered": found_share(set(text_facts(source).content), fresh),
        "entity_verbatim": float(entity.lower() in source.lower()),
        "question_near_answer": max((coverage(question, s) for s in holding), default=0.0),
    }
