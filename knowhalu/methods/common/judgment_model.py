"""Evidence features of a claim, and the calibrated logistic regression over them, whose weights can be read in its file."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import FITTED_FILES, HASHED_FILES, check_fitted_weights, file_hash, fitted_folder, weights_hash
from knowhalu.io.verifier_file import ExternalVerifier, read_external
from knowhalu.methods.common.combine import Thresholds
from knowhalu.requests import Probabilities
from knowhalu.text.findings import Findings, find_findings
from knowhalu.text.overlap import coverage, found_share, text_facts
from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.values import Agreement
from knowhalu.types import KnowledgeForm, Sample

TASKS = ("claim", "answer")
MAX_LOGIT = 6.0


def logit(p: float) -> float:
    """Return the log-odds, cut off at `MAX_LOGIT`."""
    p = min(max(p, 1e-6), 1 - 1e-6)
    return max(-MAX_LOGIT, min(MAX_LOGIT, math.log(p / (1 - p))))


class SentenceScores(NamedTuple):
    """The scores of a claim by a single sentence, and the share of the claim's words that it has."""

    text: str
    scores: Probabilities
    relevance: float


class SupportBySteps(NamedTuple):
    """Two sentences that support a claim together, the entity that connects them, and P(supported) of the weaker step.

    `refuted` is the probability that the first step holds and the second one is contradicted.
    """

    name: str
    sentences: tuple[str, str]
    supported: float
    refuted: float = 0.0

    @property
    def settles(self) -> bool:
        """Tell whether both steps are sure, so that the claim is supported where no single source supports it."""
        return self.supported >= MIN_SETTLED

    @property
    def refutes(self) -> bool:
        """Tell whether the first step surely holds, and the second surely does not."""
        return not self.settles and self.refuted >= MIN_REFUTED


class WindowScores(NamedTuple):
    """One verifier's scores of a claim by each window of a source, and by sentences of several sources.

    `plain` are the scores of the windows without question or context, `windows` with it; they are equal where there is none.
    """

    windows: tuple[Probabilities, ...]
    plain: tuple[Probabilities, ...]
    joined: Probabilities | None

    def denied(self) -> "WindowScores":
        """Return the scores of the negation."""
        windows, plain = tuple(map(denied, self.windows)), tuple(map(denied, self.plain))
        return WindowScores(windows, plain, denied(self.joined) if self.joined else None)


class Reading(NamedTuple):
    """All scores of a claim: by windows, as the verifier reads them and as `small` does beside it, and by single sentences."""

    scores: WindowScores
    sentences: tuple["SentenceScores", ...]
    bridged: SupportBySteps | None = None
    small: WindowScores | None = None

    @property
    def windows(self) -> tuple[Probabilities, ...]:
        """Return the verifier's scores by each window."""
        return self.scores.windows

    @property
    def plain(self) -> tuple[Probabilities, ...]:
        """Return the verifier's scores by each window, without question or context."""
        return self.scores.plain

    def denied(self) -> "Reading":
        """Return the reading of the negation; the sentences are read as the negation before."""
        small = self.small.denied() if self.small else None
        return self._replace(scores=self.scores.denied(), bridged=None, small=small)


def denied(scores: Probabilities) -> Probabilities:
    """Return the scores of the negation of a statement."""
    return Probabilities(scores.contradicted, scores.supported, scores.neutral)


def speaking_window(reading: Reading, windows: Sequence[str], names: frozenset[str], question: str = "") -> int:
    """Return the number of the window that supports most, of those that have most of the names that a claim is about."""
    return max(_most_named(windows, names, question), key=lambda i: reading.windows[i].supported)


def _most_support(reading: Reading, best: int) -> float:
    """Return the most that a claim may be supported: little where two steps refute it and no window is sure."""
    by, scores = reading.bridged, (reading.windows[best], reading.plain[best])
    unsure = any(s.supported < MIN_SETTLED for s in scores)
    return 1 - by.refuted if by is not None and by.refutes and unsure else 1.0


def _most_named(texts: Sequence[str], names: frozenset[str], question: str) -> list[int]:
    """Return the numbers of the texts with most names: those of the question count first, as the answer may be of another."""
    asked = names & set(content_words(question))
    found = [names & set(text_facts(text).content) for text in texts]
    shares = [(len(asked & shared), len(shared)) for shared in found]
    return [i for i, share in enumerate(shares) if share == max(shares)]


BY_SMALL = "small_window_supported small_plain_supported small_joined_supported".split()
"""Features of a run in which `small` reads the windows, too: it errs on other rows than a larger one, most on long sources."""
SUPPORTING = [*"window_supported plain_supported sentence_supported joined_supported values_equal".split(), *BY_SMALL]
OPPOSING = "names_missing values_differ values_missing".split()
REPORTED = "window_contradicted sentence_contradicted coverage fresh_covered on_topic".split()
"""Features without a weight, for labels and reasons.

On the training rows, words in common and contradictions bring nothing beside the support: the former reward copying, and what is
called contradicted there mostly stands where the evidence is on the topic at all.
"""
FEATURES = frozenset((*SUPPORTING, *OPPOSING))
"""The names of all weighted features; supporting ones never have a negative weight, opposing ones never a positive one."""
MIN_SETTLED = 0.5
"""P(supported) of both steps from which a claim counts as supported by two sources."""
SETTLED = 0.95
"""P(supported) of a claim that a rule or a calculation confirms."""
MIN_REFUTED = 0.8
"""P of a sure first step and a contradicted second one from which they count against a claim."""
MIN_RELEVANT_SHARE = 0.5
"""The share of a claim's words that a sentence must have for its contradiction to count."""


def judgment_features(
    part: Sample, windows: Sequence[str], reading: Reading, names: frozenset[str]
) -> tuple[dict[str, float], Findings]:
    """Return the features of a claim on `names`, and the findings behind them; `windows` are the texts that were read."""
    views = [s.text for s in reading.sentences]
    source = " ".join((*windows, *views))
    claim, best = part.response, speaking_window(reading, windows, names, part.question or "")
    window = reading.windows[best]
    wanted, given, here = text_facts(claim), text_facts(source), text_facts(windows[best])
    relevant = [s.scores.contradicted for s in reading.sentences if s.relevance >= MIN_RELEVANT_SHARE]
    settled = reading.bridged.supported if reading.bridged and reading.bridged.settles else 0.0
    here = given if settled else here
    most = _most_support(reading, best)
    known = set(content_words(part.question or ""))
    fresh = {w for w in wanted.content if w not in known}
    near = [*views, *(s.text for s in sentences(windows[best]))]
    found = find_findings(claim, near, source, part.question or "")
    agreements = found.agreements
    return {
        **_window_features(reading.scores, best, settled, most),
        **({f"small_{n}": v for n, v in _window_features(reading.small, best, settled, most).items()} if reading.small else {}),
        "window_contradicted": logit(window.contradicted),
        "sentence_supported": logit(min(most, max(settled, *_speaking(reading.sentences, names, part.question or "")))),
        "sentence_contradicted": logit(max(relevant, default=0.0)),
        "coverage": coverage(claim, source),
        "fresh_covered": found_share(set(given.content), fresh),
        "names_missing": 1 - found_share(set(here.content), names),
        "values_equal": float(bool(agreements) and not found.differ and all(a is Agreement.EQUAL for a in agreements)),
        "values_differ": found.differ,
        "values_missing": float(None in agreements),
    }, found


def _window_features(scores: WindowScores, best: int, settled: float, most: float) -> dict[str, float]:
    """Return how far a claim is supported by its best window, with and without question or context, and by joined sentences."""
    window, plain = scores.windows[best].supported, scores.plain[best].supported
    joined = scores.joined.supported if scores.joined else window
    supported = {"window": window, "plain": plain, "joined": max(joined, window)}
    return {f"{name}_supported": logit(min(most, max(p, settled))) for name, p in supported.items()}


def _speaking(sentences: Sequence[SentenceScores], names: frozenset[str], question: str) -> list[float]:
    """Return P(supported) by the sentences with most of the names of a claim: what others say may hold for another thing."""
    return [sentences[i].scores.supported for i in _most_named([s.text for s in sentences], names, question)]


def denied_features(features: Mapping[str, float], source: str) -> dict[str, float]:
    """Return the features of the denial of a statement from those of the statement, read as denied.

    A value that the sources confirm contradicts the denial where they have all of the statement's other words, and deny nothing.
    """
    repeated = features["coverage"] == 1 and not text_facts(source).negations
    equal, differ = features["values_equal"] * float(repeated), features["values_differ"]
    return {**features, "values_equal": float(differ >= MIN_RELEVANT_SHARE), "values_differ": equal, "values_missing": 0.0}


@dataclass(frozen=True)
class FeatureWeights:
    """One logistic regression on raw features.

    P(supported) = sigmoid(slope x (bias + sum of weight x feature - cut)). The slope is one over the temperature, fitted on rows
    that the weights were not fitted on.
    """

    bias: float
    weights: Mapping[str, float]
    cut: float
    slope: float = 1.0

    def probability(self, features: Mapping[str, float]) -> float:
        """Return P(supported) of a segment, shifted so that the fitted decision threshold is at 0.5."""
        score = self.bias + sum(w * features[name] for name, w in self.weights.items())
        score = self.slope * (score - self.cut)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def _known(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights; raises ValueError for an unknown feature, as those of earlier versions are."""
    if unknown := set(weights) - FEATURES:
        raise ValueError(f"unknown feature {sorted(unknown)[0]!r}")
    return dict(weights)


def verifier_hash(folder: Path, light: Path | None = None) -> str:
    """Return one hash over the files that make a verifier, those of one for single sentences, and the names of the features.

    Neither a run nor a profile of a version with other features may continue here, also where the files are the same.
    """
    external = read_external(folder)
    if external is None:
        hashes = [file_hash(folder / name) for name in HASHED_FILES]
    else:
        fitted = (file_hash(external.fitted / name) for name in FITTED_FILES)
        hashes = [weights_hash(folder), str(external.card.threshold), *fitted]
    hashes += sorted(FEATURES) if light is None else [verifier_hash(light)]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]


def plain_judgment(
    verifier: ExternalVerifier | None = None, tasks: Iterable[str] = TASKS, *, by_small: bool = False
) -> dict[str, Any]:
    """Return the content of a judgment.json that follows the verifier: its probability, with its threshold shifted to 0.5.

    With `by_small`, the features of the verifier `small` are computed, too, for a fit.
    """
    cut = 0.0 if verifier is None else logit(verifier.card.threshold)
    plain = {"bias": 0.0, "cut": cut, "weights": {"window_supported": 1.0, **(dict.fromkeys(BY_SMALL, 0.0) if by_small else {})}}
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
            self._weights = {k: FeatureWeights(**{**v, "weights": _known(v["weights"])}) for k, v in data["weights"].items()}
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

    @property
    def by_small(self) -> bool:
        """Tell whether any weight is for a feature of the verifier `small` beside this one."""
        return any(name in weights.weights for weights in self._weights.values() for name in BY_SMALL)

    def thresholds(self, task: str) -> Thresholds:
        """Return delta1 and delta2 as calibrated."""
        return self._thresholds[task]
