"""From judged claims to the verdict of Factored Verification: findings, segments, and the combined probability against theta."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from knowhalu.methods.common.combine import NAMES, Standard, combined, doubt
from knowhalu.methods.common.evidence import link, trimmed
from knowhalu.methods.common.verdict import NOTHING, RELATIONS, how_wrong
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.settings import FactoredOptions
from knowhalu.text.sentences import Span
from knowhalu.types import Claim, Judgment, Kind, Label, OpenReason, Sample

SUPPORTED = 0.5
"""P(supported) from which a claim, looked at alone, is called supported."""
SINGLY = "the model gave no probabilities, so each claim counts as 0 or 1 (llm.votes draws several judgments)"
ORDER = {Label.INCORRECT: 0, Label.INCONCLUSIVE: 1, Label.CORRECT: 2}


class Judged(NamedTuple):
    """A claim and what was judged of it."""

    claim: Claim
    judgment: Judgment

    @property
    def is_open(self) -> bool:
        """Tell whether nothing was found by which it could be judged."""
        return self.judgment.label is Label.INCONCLUSIVE and self.judgment.rationale == NOTHING


class Part(NamedTuple):
    """A sentence of the response, its judged claims, and findings on its citations."""

    span: Span
    judged: tuple[Judged, ...]
    citations: tuple[Finding, ...] = ()

    @property
    def probabilities(self) -> list[float]:
        """Return P(supported) of all that counts: claims that could be judged, and citations that are made up."""
        claims = [j.judgment.supported for j in self.judged if not j.is_open]
        return claims + [c.supported for c in self.citations if c.label is Label.INCORRECT]

    @property
    def why_open(self) -> list[OpenReason]:
        """Return why claims and citations were left open; a citation that fits no source lacks one."""
        claims = [j.judgment.open or OpenReason.NOTHING_RETRIEVED for j in self.judged if j.is_open]
        return claims + [OpenReason.NOTHING_RETRIEVED for c in self.citations if c.label is Label.INCONCLUSIVE]


def concluded(
    sample: Sample, parts: Sequence[Part], standard: Standard, options: FactoredOptions, notes: Sequence[str], method: str
) -> Verdict:
    """Combine all claims of a text; under theta it is hallucinated, else what was left open leaves the whole open."""
    said: dict[str, Any] = {"id": sample.id, "task": sample.task, "method": method}
    counted = [p for part in parts for p in part.probabilities]
    theta = standard.thetas[options.rule] if options.theta is None else options.theta
    features: dict[str, float] = {"claims": float(len(counted)), "theta": theta}
    if counted:
        features |= {str(k): v for k, v in combined(counted, standard.typical, standard.reference).items()}
    segments = tuple(_segment(sample.response, part, features) for part in parts)
    why = next(iter(why for part in parts for why in part.why_open), OpenReason.NOTHING_TO_CHECK)
    if not counted:
        reason = "; ".join(["nothing could be checked" if parts else "there is nothing to check", *_open(segments), *notes])
        return Verdict(**said, label=Label.INCONCLUSIVE, hallucinated=None, open=why, kind=None, probability=0.5,
                       reason=reason, segments=segments)  # fmt: skip
    value = features[options.rule]
    hallucinated, left, worst = value < theta, _open(segments), _least(segments)
    how = worst.relation if worst.label is Label.INCORRECT else None
    label = Label.INCORRECT if hallucinated else Label.INCONCLUSIVE if left else Label.CORRECT
    return Verdict(
        **said, label=label, hallucinated=None if label is Label.INCONCLUSIVE else hallucinated,
        open=why if label is Label.INCONCLUSIVE else None, relation=how if hallucinated else None,
        kind=Kind.FACTUAL if hallucinated else None, probability=0.5 if label is Label.INCONCLUSIVE else doubt(value, theta),
        reason="; ".join([_sum(value, theta, parts, options), *_worst(worst), *left, *_unmeasured(parts), *notes]),
        segments=segments,
    )  # fmt: skip


def _sum(value: float, theta: float, parts: Sequence[Part], options: FactoredOptions) -> str:
    made_up = sum(c.label is Label.INCORRECT for p in parts for c in p.citations)
    claims = sum(len(p.probabilities) for p in parts) - made_up
    over = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((claims, "claim"), (made_up, "unmatched citation")) if n]
    many = f"{NAMES[options.rule]} over {' and '.join(over)}" if claims + made_up > 1 else f"that of {over[0]}"
    return f"P(supported) = {value:.3g}, {many}, is {'under' if value < theta else 'not under'} theta {theta:.3g}"


def _least(segments: Iterable[Segment]) -> Finding:
    """Return what is supported least."""
    found = [f for s in segments for f in s.findings if f.label is not Label.INCONCLUSIVE]
    return min(found, key=lambda f: f.supported)


def _worst(worst: Finding) -> list[str]:
    return [f"least supported ({worst.supported:.2f}): “{worst.text}” ({worst.reason})"]


def _open(segments: Iterable[Segment]) -> list[str]:
    found = [f for s in segments for f in s.findings if f.label is Label.INCONCLUSIVE]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [f"left open: “{found[0].text}” ({found[0].reason}){more}"] if found else []


def _unmeasured(parts: Iterable[Part]) -> list[str]:
    unmeasured = any(j.judgment.measured == "nowhere" and j.judgment.rationale != NOTHING for p in parts for j in p.judged)
    return [SINGLY] if unmeasured else []


def _segment(response: str, part: Part, features: dict[str, float]) -> Segment:
    """Make a segment of a sentence: it is as good as the worst of what was found of it. Its features are those of the text."""
    span = part.span
    findings = (*map(_finding, part.judged), *part.citations)
    worst = min(findings, key=lambda f: (ORDER[f.label], f.supported))
    supported = min([*part.probabilities, *([0.5] if worst.label is Label.INCONCLUSIVE else [])], default=worst.supported)
    sure = {Label.CORRECT: supported, Label.INCORRECT: 1 - supported, Label.INCONCLUSIVE: 0.0}[worst.label]
    judgments = [trimmed(j.judgment) for j in part.judged]
    how = {j.measured for j in judgments} | ({"nowhere"} if worst.label is Label.INCONCLUSIVE else set())
    base = Judgment(
        label=worst.label, confidence=sure, supported=supported, rationale=f"“{worst.text}”: {worst.reason}", features=features,
        open=part.why_open[0] if worst.label is Label.INCONCLUSIVE else None,
        relation=worst.relation if worst.label is Label.INCORRECT else None,
        measured="nowhere" if "nowhere" in how else "votes" if "votes" in how else "probability",
        steps=tuple(step for j in judgments for step in j.steps),
    )  # fmt: skip
    pairs = [
        pair for j, judgment in zip(part.judged, judgments, strict=True)
        for pair in link(Span(j.claim.start, j.claim.end, response[j.claim.start : j.claim.end]), judgment)
    ]  # fmt: skip
    return Segment(
        start=span.start, end=span.end, text=span.text, label=worst.label, open=base.open, relation=base.relation,
        probability=1 - supported, base=base, findings=findings, evidence=tuple(dict.fromkeys(pairs)),
    )  # fmt: skip


def _finding(judged: Judged) -> Finding:
    claim, judgment = judged
    label = Label.CORRECT if judgment.supported >= SUPPORTED else Label.INCORRECT
    label = Label.INCONCLUSIVE if judged.is_open else label
    relation = how_wrong(label, judgment) if label is Label.INCORRECT else RELATIONS[label]
    return Finding(
        unit="claim", start=claim.start, end=claim.end, text=claim.text, label=label, relation=relation,
        supported=judgment.supported, reason=judgment.rationale,
    )  # fmt: skip
