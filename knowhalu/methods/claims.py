"""Claims in words of their own, and where in the response each is made."""

from knowhalu.text import Span, content_words, sentences
from knowhalu.types import Judgment, Label, Relation
from knowhalu.verdicts import Finding

RELATIONS = {
    Label.CORRECT: Relation.ENTAILMENT, Label.INCORRECT: Relation.CONTRADICTION, Label.INCONCLUSIVE: Relation.NEUTRAL,
}  # fmt: skip
"""How the sources stand to a claim with this label."""


def place(claim: str, piece: Span) -> Span:
    """Return the sentence of a piece that shares most words with a claim; the whole piece where none shares any."""
    wanted = set(content_words(claim))
    shared = [(len(wanted & set(content_words(s.text))), -i, s) for i, s in enumerate(sentences(piece.text))]
    most, _, best = max(shared, default=(0, 0, piece))
    return Span(piece.start + best.start, piece.start + best.end, best.text) if most else piece


def finding(claim: str, judgment: Judgment, piece: Span) -> Finding:
    """Make the finding of a claim that was judged alone."""
    at = place(claim, piece)
    return Finding(
        unit="claim", start=at.start, end=at.end, text=claim, label=judgment.label, relation=RELATIONS[judgment.label],
        supported=judgment.supported, reason=judgment.rationale,
    )  # fmt: skip
