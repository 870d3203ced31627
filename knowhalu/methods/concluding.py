"""From segments to the verdict: what decides, and what a label means for each task."""

from collections.abc import Sequence

from knowhalu.steps import Doubtful
from knowhalu.text import Span
from knowhalu.types import Extraction, Judgment, Kind, Label, Relation, Sample, Task
from knowhalu.verdicts import Finding, Segment, Verdict

NOTHING = "the sources say nothing of this"
NOT_BORNE_OUT = "the evidence does not bear these words out"
RELATIONS = {
    Label.CORRECT: Relation.ENTAILMENT, Label.INCORRECT: Relation.CONTRADICTION, Label.INCONCLUSIVE: Relation.NEUTRAL,
}  # fmt: skip
"""How the sources stand to what has this label."""


def settled(label: Label, task: Task) -> Label:
    """Return the label of a piece: in a summary, what its document leaves open is INCORRECT (KnowHalu, section 4.3)."""
    return Label.INCORRECT if label is Label.INCONCLUSIVE and task is Task.SUMMARY else label


def hallucinated(label: Label) -> bool | None:
    """Tell whether a label means a hallucination; None where it is left open."""
    return {Label.INCORRECT: True, Label.CORRECT: False, Label.INCONCLUSIVE: None}[label]


def left_open(task: Task, why: str) -> Judgment:
    """Make the judgment of what nobody was asked about: a model that is asked without sources answers from memory."""
    label = settled(Label.INCONCLUSIVE, task)
    supported = 0.0 if label is Label.INCORRECT else 0.5
    return Judgment(label=label, confidence=0.0, supported=supported, rationale=why, measured="nowhere")


def words(piece: Span, place: Doubtful) -> Finding:
    """Make the finding of marked words of a piece of the response; `place` counts from the piece's start."""
    return Finding(
        unit="words", start=piece.start + place.start, end=piece.start + place.end, text=piece.text[place.start : place.end],
        label=Label.INCORRECT, supported=1 - place.probability, reason=NOT_BORNE_OUT,
    )  # fmt: skip


def worst_of(found: Sequence[Segment]) -> Segment:
    """Return the segment that decides a text: one that is INCORRECT, else one left open, of these the most doubtful."""
    return max(found, key=lambda s: (s.label is Label.INCORRECT, s.label is Label.INCONCLUSIVE, s.probability))


def conclude(
    sample: Sample,
    found: Sequence[Segment],
    method: str,
    *,
    extraction: Extraction | None = None,
    kind: Kind | None = Kind.FACTUAL,
) -> Verdict:
    """Put segments together: one INCORRECT makes the text hallucinated, else one INCONCLUSIVE leaves it open.

    `kind` is that of a hallucination whose judgment names none; a method that cannot tell kinds gives None.
    """
    worst = worst_of(found)
    decisive = worst.base if worst.supplement is None or worst.base.label is worst.label else worst.supplement
    return Verdict(
        id=sample.id, task=sample.task, method=method, label=worst.label, hallucinated=hallucinated(worst.label),
        kind=(decisive.kind or kind) if worst.label is Label.INCORRECT else None, probability=worst.probability,
        reason=decisive.rationale, extraction=extraction, segments=tuple(found),
    )  # fmt: skip
