"""Judgments by an LLM: the rationale first, then a label under constraint, whose probability is the confidence.

What the rationale says of labels does not matter: the label is chosen after it, out of three. Its confidence is the probability
of the label among the three (KnowHalu, section 3.2 e), or the share of equal votes where several judgments are drawn.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.reasoners.asking import asked_twice, begun
from knowhalu.reasoners.grounding import weighed
from knowhalu.reasoners.layout import JUDGMENT, LABEL
from knowhalu.reasoners.replies import read_label, sections, whole_sentences
from knowhalu.steps import Completion, Generate, Steps
from knowhalu.types import Form, Judgment, Label, Sample, Step, Task

LABEL_TOKENS = 16
CAREFUL = (Label.INCONCLUSIVE, Label.INCORRECT, Label.CORRECT)
"""Of labels with equally many votes, the first of these counts."""
NOTHING = "the sources say nothing of this"
GO_THROUGH = " Each detail is held against the knowledge in turn."
"""How a rationale begins that the model did not begin itself."""
UNMEASURED = "(the model gave no probability for its label{})"
ASKED_TOO = ", so the other form of knowledge is asked too"


class Scale(NamedTuple):
    """The words that a model chooses from, the heading under which it does, and how a rationale begins that it did not begin."""

    words: Mapping[str, Label]
    heading: str = LABEL
    opening: str = GO_THROUGH


LABELS = Scale({str(label): label for label in (Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE)})


def judged(request: Generate, part: Sample, steps: Sequence[Step], form: Form, votes: int = 1) -> Steps[Judgment]:
    """Judge by the knowledge of all steps; `request` asks for the rationale.

    Where no step has any knowledge, the judgment is INCONCLUSIVE without asking: a model would answer from memory.
    """
    shares: dict[Label, float] = {Label.INCONCLUSIVE: 1.0}
    if all(step.knowledge.is_empty for step in steps):
        judgment = Judgment(form=form, label=Label.INCONCLUSIVE, confidence=0.0, rationale=NOTHING, measured="nowhere")
    else:
        judgment, shares = yield from decided(request, form, votes)
    judgment = judgment.model_copy(update={"supported": _supported(shares, part.task)})
    found = weighed(steps, judgment, contradicted=shares.get(Label.INCORRECT, 0.0))
    return judgment.model_copy(update={"steps": found})


def _supported(shares: dict[Label, float], task: Task) -> float:
    """Return the probability that the text is true: what is left open is true as often as not.

    A summary must stand in its document, so what is left open there counts against it (KnowHalu, section 4.3).
    """
    left_open = 0.0 if task is Task.SUMMARY else shares.get(Label.INCONCLUSIVE, 0.0) / 2
    return min(1.0, shares.get(Label.CORRECT, 0.0) + left_open)


def decided(
    request: Generate, form: Form | None = None, votes: int = 1, scale: Scale = LABELS
) -> Steps[tuple[Judgment, dict[Label, float]]]:
    """Ask for the rationale, then for a word of the scale; returns the judgment and the share of each label."""
    return (yield from _by_votes(request, form, votes, scale) if votes > 1 else _once(request, form, scale))


def _once(request: Generate, form: Form | None, scale: Scale) -> Steps[tuple[Judgment, dict[Label, float]]]:
    """Take the most probable label; without probabilities the label alone counts, with no confidence.

    A confidence of 0 is under every delta1, so Algorithm 1 asks the other form too, and over no delta2, so an unmeasured
    supplement overrides only what is INCONCLUSIVE.
    """
    rationale, label, shares = yield from _reasoned(request, scale)
    if shares:
        return Judgment(form=form, label=label, confidence=shares[label], rationale=rationale), shares
    said = UNMEASURED.format(ASKED_TOO if form else "")
    unsure = Judgment(form=form, label=label, confidence=0.0, rationale=f"{rationale} {said}", measured="nowhere")
    return unsure, {label: 1.0}


def _shares(reply: Completion, scale: Scale) -> dict[Label, float]:
    """Return the probabilities of the labels, adding up to 1; none where the backend gave none that can be used."""
    given = {scale.words[name]: p for name, p in reply.choices.items() if name in scale.words}
    total = sum(given.values())
    if not all(p >= 0 for p in given.values()) or not 0 < total < float("inf"):
        return {}
    return {label: p / total for label, p in given.items()}


def _by_votes(request: Generate, form: Form | None, votes: int, scale: Scale) -> Steps[tuple[Judgment, dict[Label, float]]]:
    """Draw several judgments at temperature 1; the majority's label counts, with its share as confidence."""
    drawn: list[tuple[str, Label]] = []
    for i in range(votes):
        rationale, label, _ = yield from _reasoned(replace(request, temperature=1.0, seed=request.seed + i), scale)
        drawn.append((rationale, label))
    counts = Counter(label for _, label in drawn)
    best = max(CAREFUL, key=lambda one: counts[one])  # the first of equals
    rationale = next(r for r, label in drawn if label is best)
    said = f"{rationale} ({counts[best]} of {votes} votes)"
    judgment = Judgment(form=form, label=best, confidence=counts[best] / votes, rationale=said, measured="votes")
    return judgment, {label: n / votes for label, n in counts.items()}


def _reasoned(request: Generate, scale: Scale) -> Steps[tuple[str, Label, dict[Label, float]]]:
    """Ask for the rationale, then go on from it to the label; returns both, and the label's probabilities."""
    reply, rationale = yield from asked_twice(request, _rationale, lambda c: replace(request, begun=scale.opening))
    lead = begun(reply.text, rationale, then=scale.heading) + "\n"
    ask = replace(request, begun=lead, stop=(), max_tokens=LABEL_TOKENS, choices=tuple(scale.words))
    restated = f"{lead}One of {', '.join(scale.words)}:\n"
    reply, label = yield from asked_twice(ask, lambda c: _label(c, scale), lambda c: replace(ask, begun=restated))
    return rationale, label, _shares(reply, scale)


def _rationale(reply: Completion) -> str:
    text = sections(reply.text, JUDGMENT, ()).texts.get(JUDGMENT, "")
    if not any(c.isalnum() for c in text):
        raise ReplyError("judge", "the reply gives no reasons", reply=reply.text)
    return (whole_sentences(text) or text) if reply.finish_reason == "length" else text


def _label(reply: Completion, scale: Scale) -> Label:
    """Return the most probable label; without probabilities, the last one that the reply has."""
    shares = _shares(reply, scale)
    if not shares:
        return read_label(reply.text, reply.text, scale.words)
    return max(shares, key=lambda one: (shares[one], one is scale.words.get(reply.text.strip())))
