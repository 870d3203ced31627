"""ROUGE and BLEU of texts against references: how much of the wording is the same, which says nothing about its truth.

ROUGE is the F1 of shared words, word pairs, or the longest common subsequence, of words in lower case without punctuation (Lin
2004; the numbers of the library `rouge-score` without stemming, which ignores other letters than a to z). BLEU-4 is that of
all rows together, with the tokens of mteval-v13a and exponential smoothing (Papineni et al. 2002; the numbers of `sacrebleu`).
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from knowhalu.evaluation.metrics import Floats

BLEU_ORDER = 4
_WORD = re.compile(r"[^\W_]+")
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_BLEU_SPLITS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "), (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"), (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)  # fmt: skip
"""What the tokenizer of mteval-v13a puts spaces around: punctuation, but no full stop, comma or hyphen within a number."""


def rouge(text: str, reference: str) -> dict[str, float]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L, each from 0 to 1; 0 where a text has no word, or no pair of words."""
    mine, theirs = (_WORD.findall(t.casefold()) for t in (text, reference))
    scores = {f"rouge{n}": _shared_f1(_ngrams(mine, n), _ngrams(theirs, n)) for n in (1, 2)}
    return {**scores, "rougeL": _f1(_common_subsequence(mine, theirs), len(mine), len(theirs))}


def bleu_counts(text: str, reference: str) -> list[float]:
    """Return the counts of a text whose sums over rows give BLEU: shared and all n-grams of each order, and both lengths."""
    mine, theirs = _bleu_tokens(text), _bleu_tokens(reference)
    shared, whole = [], []
    for n in range(1, BLEU_ORDER + 1):
        ours = _ngrams(mine, n)
        shared.append(float((ours & _ngrams(theirs, n)).total()))
        whole.append(float(ours.total()))
    return [*shared, *whole, float(len(mine)), float(len(theirs))]


def bleu_from_counts(total: Floats) -> Floats:
    """Return BLEU-4, from 0 to 1, of summed counts, an array of shape (..., 10)."""
    columns = np.moveaxis(total, -1, 0)
    shared, whole, (length, reference) = columns[:BLEU_ORDER], columns[BLEU_ORDER:-2], columns[-2:]
    misses = np.cumsum(shared == 0, axis=0)
    smoothed = np.where(shared == 0, 0.5**misses, shared)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(smoothed / np.where(whole == 0, np.nan, whole)).mean(axis=0)
        penalty = np.minimum(0.0, 1 - reference / np.where(length == 0, np.nan, length))
    is_zero = (shared.sum(axis=0) == 0) | (whole == 0).any(axis=0)
    return np.where(is_zero, 0.0, np.exp(np.where(is_zero, 0.0, logs + penalty)))


def _bleu_tokens(text: str) -> list[str]:
    line = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        line = line.replace(entity, character)
    line = f" {line} "
    for pattern, spaced in _BLEU_SPLITS:
        line = pattern.sub(spaced, line)
    return line.split()


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _shared_f1(mine: Counter[tuple[str, ...]], theirs: Counter[tuple[str, ...]]) -> float:
    return _f1((mine & theirs).total(), mine.total(), theirs.total())


def _f1(shared: int, mine: int, theirs: int) -> float:
    return 2 * shared / (mine + theirs) if shared else 0.0


def _common_subsequence(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(theirs) + 1)
    for word in mine:
        before = row[:]
        for j, other in enumerate(theirs, 1):
            row[j] = before[j - 1] + 1 if word == other else max(before[j], row[j - 1])
    return row[-1]
