"""Judgments by an LLM: the rationale first, then a label under constraint, whose probability is the confidence.

What the rationale says of labels does not matter: the label is chosen after it, out of three. Its confidence is the probability
of the label among the three (KnowHalu, section 3.2 e), or the share of equal votes where several judgments are drawn.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.methods.common.attribution import weighed
from knowhalu.methods.common.verdict import NOTHING, silent
from knowhalu.prompts.format import JUDGMENT, LABEL
from knowhalu.prompts.generate import asked_twice, begun
from knowhalu.prompts.replies import read_label, sections, whole_sentences
from knowhalu.requests import Completion, Generate, Steps
from knowhalu.types import Form, Judgment, Label, OpenReason, Relation, Sample, Step, Task

LABEL_TOKENS = 16
CAREFUL = (Label.INCONCLUSIVE, Label.INCORRECT, Label.CORRECT)
"""Of labels with equally many votes, the first of these counts."""
GO_THROUGH = " Each detail is held against the knowledge in turn."
"""How a rationale begins that the model did not begin itself."""
UNMEASURED = "(the model gave no probability for its label{})"
ASKED_TOO = ", so the other form of knowledge is asked too"
MEASURES = "; --set llm.votes=20 measures it by votes"


class Scale(NamedTuple):
    """The words that a model chooses from, the heading under which it does, and how a rationale begins that it did not begin."""

    words: Mapping[str, Label]
    heading: str = LABEL
    opening: str = GO_THROUGH


LABELS = Scale({str(label): label for label in (Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE)})
Shares = dict[Label, float]
"""Probabilities of labels, or their shares of the votes, adding up to 1."""
Thought = tuple[str, Label, Shares]
"""A rationale, the label after it, and the label's probabilities where the backend gave them."""
Think = Callable[[Generate], Steps[Thought]]


def judged(request: Generate, part: Sample, steps: Sequence[Step], form: Form, votes: int = 1) -> Steps[Judgment]:
    """Judge by the knowledge of all steps; `request` asks for the rationale.

    Where no step has any knowledge, the judgment is INCONCLUSIVE without asking: a model would answer from memory.
    """
    shares: Shares = {Label.INCONCLUSIVE: 1.0}
    if all(step.knowledge.is_empty for step in steps):
        judgment = Judgment(
            form=form, label=Label.INCONCLUSIVE, confidence=0.0, rationale=NOTHING, measured="nowhere", open=silent(steps)
        )
    else:
        judgment, shares = yield from decided(request, form, votes)
    judgment = judgment.model_copy(update={"supported": supported(shares, part.task)})
    found = weighed(steps, judgment, contradicted=shares.get(Label.INCORRECT, 0.0))
    return judgment.model_copy(update={"steps": found})


def reasons(label: Label, scale: Scale) -> dict[str, Any]:
    """Return what a label alone tells: a judge that could have left it open, and did not, was contradicted by the sources."""
    told = label is Label.INCORRECT and Label.INCONCLUSIVE in scale.words.values()
    return {
        "open": OpenReason.UNSURE if label is Label.INCONCLUSIVE else None, "relation": Relation.CONTRADICTION if told else None
    }  # fmt: skip


def supported(shares: Shares, task: Task) -> float:
    """Return the probability that the text is true: what is left open is true as often as not.

    A summary must stand in its document, so what is left open there counts against it (KnowHalu, section 4.3).
    """
    left_open = 0.0 if task is Task.SUMMARY else shares.get(Label.INCONCLUSIVE, 0.0) / 2
    return min(1.0, shares.get(Label.CORRECT, 0.0) + left_open)


def decided(
    request: Generate, form: Form | None = None, votes: int = 1, scale: Scale = LABELS, *, think: Think | None = None,
    temperature: float = 1.0,
) -> Steps[tuple[Judgment, Shares]]:  # fmt: skip
    """Judge once by the most probable label, or by the majority of several judgments that are drawn at a temperature.

    `think` asks for what comes before the label, and for the label: by default a rationale.
    """
    think = think or (lambda asked: reasoned(asked, scale))
    if votes > 1:
        judgment, shares = yield from _by_votes(request, form, votes, think, temperature)
        return judgment.model_copy(update=reasons(judgment.label, scale)), shares
    rationale, label, shares = yield from think(request)
    why = reasons(label, scale)
    if shares:
        return Judgment(form=form, label=label, confidence=shares[label], rationale=rationale, **why), shares
    # a confidence of 0 is under every delta1, so Algorithm 1 asks the other form too, and over no delta2, so an unmeasured
    # supplement overrides only what is INCONCLUSIVE
    said = f"{rationale} {UNMEASURED.format(ASKED_TOO if form else MEASURES)}"
    return Judgment(form=form, label=label, confidence=0.0, rationale=said, measured="nowhere", **why), {label: 1.0}


def _by_votes(
    request: Generate, form: Form | None, votes: int, think: Think, temperature: float
) -> Steps[tuple[Judgment, Shares]]:
    """Draw several judgments; the majority's label counts, with its share as confidence."""
    drawn: list[tuple[str, Label]] = []
    for i in range(votes):
        rationale, label, _ = yield from think(replace(request, temperature=temperature, seed=request.seed + i))
        drawn.append((rationale, label))
    counts = Counter(label for _, label in drawn)
    best = max(CAREFUL, key=lambda one: counts[one])  # the first of equals
    rationale = next(r for r, label in drawn if label is best)
    said = f"{rationale} ({counts[best]} of {votes} votes)"
    judgment = Judgment(form=form, label=best, confidence=counts[best] / votes, rationale=said, measured="votes")
    return judgment, {label: n / votes for label, n in counts.items()}


def reasoned(request: Generate, scale: Scale = LABELS) -> Steps[Thought]:
    """Ask for the rationale, then go on from it to the label; returns both, and the label's probabilities."""
    reply, rationale = yield from asked_twice(request, _rationale, lambda c: replace(request, begun=scale.opening))
    lead = begun(reply.text, rationale, then=scale.heading) + "\n"
    label, shares = yield from labelled(request, lead, scale)
    return rationale, label, shares


def labelled(request: Generate, lead: str, scale: Scale = LABELS, *, draw: bool = False) -> Steps[tuple[Label, Shares]]:
    """Go on from `lead`, a begun reply, to a word of the scale: the most probable one, or with `draw` the one that was drawn."""
    ask = replace(request, begun=lead, stop=(), max_tokens=LABEL_TOKENS, choices=tuple(scale.words))
    restated = f"{lead}One of {', '.join(scale.words)}:\n"
    reply, label = yield from asked_twice(ask, lambda c: _label(c, scale, draw), lambda c: replace(ask, begun=restated))
    return label, _shares(reply, scale)


def _shares(reply: Completion, scale: Scale) -> Shares:
    """Return the probabilities of the labels, adding up to 1; none where the backend gave none that can be used."""
    given = {scale.words[name]: p for name, p in reply.choices.items() if name in scale.words}
    total = sum(given.values())
    if not all(p >= 0 for p in given.values()) or not 0 < total < float("inf"):
        return {}
    return {label: p / total for label, p in given.items()}


def _rationale(reply: Completion) -> str:
    text = sections(reply.text, JUDGMENT, ()).texts.get(JUDGMENT, "")
    if not any(c.isalnum() for c in text):
        raise ReplyError("judge", "the reply gives no reasons", reply=reply.text)
    return (whole_sentences(text) or text) if reply.finish_reason == "length" else text


def _label(reply: Completion, scale: Scale, draw: bool) -> Label:
    """Return the most probable label; without probabilities, the last one that the reply has."""
    shares = {} if draw else _shares(reply, scale)
    if not shares:
        return read_label(reply.text, reply.text, scale.words)
    return max(shares, key=lambda one: (shares[one], one is scale.words.get(reply.text.strip())))
