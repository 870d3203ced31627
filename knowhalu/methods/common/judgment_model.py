"""Evidence features of a claim, and the calibrated logistic regression over them, whose weights can be read in its file."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import FITTED_FILES, HASHED_FILES, check_fitted_weights, file_hash, fitted_folder, weights_hash
from knowhalu.io.verifier_file import ExternalVerifier, read_external
from knowhalu.methods.common.combine import Thresholds
from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, found_share, text_facts
from knowhalu.text.quantities import mismatched_quantity_share, missing_date_share
from knowhalu.text.sentences import content_words
from knowhalu.types import KnowledgeForm

TASKS = ("claim", "answer")
MAX_LOGIT = 6.0
CONTRADICTION_LOGIT = 1.0
"""Log-odds from which a contradiction is certain: hardly any claim above is supported."""


def logit(p: float) -> float:
    """Return the log-odds, cut off at `MAX_LOGIT`."""
    p = min(max(p, 1e-6), 1 - 1e-6)
    return max(-MAX_LOGIT, min(MAX_LOGIT, math.log(p / (1 - p))))


class VerifierScores(NamedTuple):
    """Verifier scores of a claim: against all evidence together, and against each sentence, with its text.

    `weakest` is the best support of the claim's least supported statement, `nearest` the scores of the sentence nearest in words.
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
"""The names of all features: those of a claim, and from `asked_supported` on those of an answer."""


def claim_features(claim: str, reading: VerifierScores, source: str) -> dict[str, float]:
    """Return the features of a plain claim: verifier log-odds, and how much of the claim is in the source.

    `coverage_open` is coverage times 1 - P(contradicted): where roles are exchanged or a "not" is added, all words are covered
    and the claim is still wrong.
    """
    wanted, given, covered = text_facts(claim), text_facts(source), coverage(claim, source)
    covers = [coverage(claim, s) for s in reading.sentences] or [0.0]
    best = max(range(len(covers)), key=covers.__getitem__)
    near = text_facts(reading.sentences[best]) if reading.sentences else text_facts("")
    relevant = [p.contradicted for p, c in zip(reading.single, covers, strict=False) if c >= 0.3] or [0.0]
    present, differs = frozenset(given.content), (wanted.negations > 0) != (near.negations > 0)
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
        "pairs": len(wanted.pairs & given.pairs) / len(wanted.pairs) if wanted.pairs else covered,
        "numbers_missing": 1 - found_share(set(given.numbers), wanted.numbers),
        "numbers_elsewhere": float(
            bool(wanted.numbers) and wanted.numbers <= given.numbers and not wanted.numbers <= near.numbers
        ),
        "dates_missing": missing_date_share(claim, source),
        "counts_missing": mismatched_quantity_share(claim, source),
        "names_missing": 1 - found_share(set(present), wanted.names),
        "negation_differs": float(differs),
        "negated": max(0.0, logit(reading.joint.contradicted)) if differs else 0.0,
    }


def answer_features(question: str, answer: str, entity: str, asked: VerifierScores, source: str) -> dict[str, float]:
    """Return the further features of an answer: the verifier with the question, and whether sources cover its new words."""
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


OLD_NAMES = {"stated_supported": "asked_supported", "stated_contradicted": "asked_contradicted"}
"""Features of earlier fits, question and answer as one statement, which took these values where no statement could be made."""
MAX_FITTED_SEGMENTS = 4
"""Segments of the longest texts that the slack was fitted on; longer texts get no more slack, so that one error still shows."""


@dataclass(frozen=True)
class FeatureWeights:
    """One logistic regression on raw features.

    P(supported) = sigmoid(slope x (bias + sum of weight x feature - cut + slack x ln(segments))): the worst of many
    segments looks unsupported by chance. The slope is one over the temperature, fitted on rows that the weights were not fitted
    on.
    """

    bias: float
    weights: Mapping[str, float]
    cut: float
    slack: float = 0.0
    slope: float = 1.0

    def probability(self, features: Mapping[str, float], segments: int = 1) -> float:
        """Return P(supported) of one of `segments` segments, shifted so that the fitted decision threshold is at 0.5."""
        score = self.bias + sum(w * features[name] for name, w in self.weights.items())
        score = self.slope * (score + self.slack * math.log(min(segments, MAX_FITTED_SEGMENTS)) - self.cut)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def _known(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights by the current names; raises ValueError for an unknown feature."""
    found: dict[str, float] = {}
    for name, weight in weights.items():
        name = OLD_NAMES.get(name, name)
        if name not in FEATURES:
            raise ValueError(f"unknown feature {name!r}")
        found[name] = found.get(name, 0.0) + weight
    return found


def has_old_features(folder: Path) -> bool:
    """Tell whether the weights in a folder were fitted on features of `OLD_NAMES`; False where there is no such file."""
    try:
        text = (folder / "judgment.json").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return any(f'"{name}"' in text for name in OLD_NAMES)


def verifier_hash(folder: Path) -> str:
    """Return one hash over the files that make a verifier.

    A fit with features of older versions has another hash than it had there, as these features have other values now: neither a
    run nor a profile of such a version may continue here.
    """
    external = read_external(folder)
    if external is None:
        hashes = [file_hash(folder / name) for name in HASHED_FILES]
    else:
        fitted = (file_hash(external.fitted / name) for name in FITTED_FILES)
        hashes = [weights_hash(folder), str(external.card.threshold), *fitted]
    hashes += ["other features"] * has_old_features(folder)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]


def plain_judgment(verifier: ExternalVerifier | None = None, tasks: Iterable[str] = TASKS) -> dict[str, Any]:
    """Return the content of a judgment.json that follows the verifier: its probability, with its threshold shifted to 0.5."""
    cut = 0.0 if verifier is None else logit(verifier.card.threshold)
    plain = {"bias": 0.0, "cut": cut, "slack": 0.0, "weights": {"joint_supported": 1.0}}
    thresholds = {task: [0.0, 1.0] for task in tasks}
    return {"weights": {f"{task}.{form}": plain for task in thresholds for form in KnowledgeForm}, "thresholds": thresholds}


class JudgmentModel:
    """The weights for each task and form, and the thresholds of the aggregation, from `judgment.json`.

    `evades` is the probability from which an answer misses its question; None where the verifier was not trained to tell. A
    external verifier may have no such file: its probability is the judgment then, and `fitted` is False.
    """

    def __init__(self, folder: Path) -> None:
        path, external = fitted_folder(folder) / "judgment.json", read_external(folder)
        self.fitted = external is None or path.is_file()
        try:
            data = json.loads(path.read_text(encoding="utf-8")) if self.fitted else plain_judgment(external)
            self._weights = {
                k: FeatureWeights(v["bias"], _known(v["weights"]), v["cut"], v["slack"], v.get("slope", 1.0))
                for k, v in data["weights"].items()
            }
            self._thresholds = {k: Thresholds(*v) for k, v in data["thresholds"].items()}
            self.evades = None if data.get("evades") is None else float(data["evades"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{path}: cannot read the judgment weights ({error}); fit them with scripts/fit_judgment.py"
            ) from error
        check_fitted_weights(path, data, "scripts/fit_judgment.py", folder)

    def weights(self, task: str, form: str) -> FeatureWeights:
        """Return the weights of "claim" or "answer" in one form."""
        return self._weights[f"{task}.{form}"]

    def thresholds(self, task: str) -> Thresholds:
        """Return delta1 and delta2 as calibrated."""
        return self._thresholds[task]
