"""Claims in words of their own, and where in the response each is made."""

import re

from knowhalu.methods.concluding import RELATIONS
from knowhalu.text import Span, content_words, sentences
from knowhalu.types import Judgment
from knowhalu.verdicts import Finding


def place(claim: str, piece: Span) -> Span:
    """Return where a piece of the response makes a claim: the exact stretch where it stands there word for word.

    Else that is the sentence whose words are most like those of the claim; the whole piece where none shares any.
    """
    bare = claim.strip().rstrip(".!")
    if bare and (exact := re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", piece.text)):
        return Span(piece.start + exact.start(), piece.start + exact.end(), exact.group())
    wanted = set(content_words(claim))
    alike, _, best = max(((_alike(wanted, s.text), -i, s) for i, s in enumerate(sentences(piece.text))), default=(0.0, 0, piece))
    return Span(piece.start + best.start, piece.start + best.end, best.text) if alike else piece


def _alike(wanted: set[str], text: str) -> float:
    """Return twice the shared words over all words (Dice): a long sentence does not win by its length alone."""
    there = set(content_words(text))
    return 2 * len(wanted & there) / (len(wanted) + len(there) or 1)


def finding(claim: str, judgment: Judgment, piece: Span) -> Finding:
    """Make the finding of a claim that was judged alone."""
    at = place(claim, piece)
    return Finding(
        unit="claim", start=at.start, end=at.end, text=claim, label=judgment.label,
        relation=judgment.relation or RELATIONS[judgment.label], supported=judgment.supported, reason=judgment.rationale,
    )  # fmt: skip
