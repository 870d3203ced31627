"""Judgments by an LLM: the rationale first, then a label under constraint, whose probability is the confidence.

What the rationale says of labels does not matter: the label is chosen after it, out of three. Its confidence is the probability
of the label among the three (KnowHalu, section 3.2 e), or the share of equal votes where several judgments are drawn.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.methods.common.attribution import assign_quote_scores
from knowhalu.methods.common.verdict import NO_EVIDENCE, missing_evidence_reason
from knowhalu.prompts.format import JUDGMENT, LABEL
from knowhalu.prompts.generate import generate_with_retry, reply_prefix
from knowhalu.prompts.replies import complete_sentences, read_label, split_sections
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.types import InconclusiveReason, Judgment, KnowledgeForm, Label, Relation, Sample, Step, Task

MAX_LABEL_TOKENS = 16
TIE_ORDER = (Label.INCONCLUSIVE, Label.INCORRECT, Label.CORRECT)
"""Of labels with equally many votes, the first of these counts."""
RATIONALE_OPENING = " Each detail is held against the knowledge in turn."
"""How a rationale begins that the model did not begin itself."""
NO_PROBABILITY_NOTE = "(the model gave no probability for its label{})"
OTHER_FORM_NOTE = ", so the other form of knowledge is asked too"
VOTES_HINT = "; --set llm.votes=20 measures it by votes"


class LabelScheme(NamedTuple):
    """The words that a model chooses from, the heading under which it does, and how a rationale begins that it did not begin."""

    words: Mapping[str, Label]
    heading: str = LABEL
    opening: str = RATIONALE_OPENING


THREE_LABEL_SCHEME = LabelScheme({str(label): label for label in (Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE)})
LabelShares = dict[Label, float]
"""Probabilities of labels, or their shares of the votes, adding up to 1."""
LabelledRationale = tuple[str, Label, LabelShares]
"""A rationale, the label after it, and the label's probabilities where the backend gave them."""
RationaleGenerator = Callable[[Generate], Conversation[LabelledRationale]]


def judge_knowledge(
    request: Generate, part: Sample, steps: Sequence[Step], form: KnowledgeForm, votes: int = 1
) -> Conversation[Judgment]:
    """Judge by the knowledge of all steps; `request` asks for the rationale.

    Where no step has any knowledge, the judgment is INCONCLUSIVE without asking: a model would answer from memory.
    """
    shares: LabelShares = {Label.INCONCLUSIVE: 1.0}
    if all(step.knowledge.is_empty for step in steps):
        judgment = Judgment(
            form=form,
            label=Label.INCONCLUSIVE,
            confidence=0.0,
            rationale=NO_EVIDENCE,
            confidence_source="none",
            inconclusive_reason=missing_evidence_reason(steps),
        )
    else:
        judgment, shares = yield from generate_judgment(request, form, votes)
    judgment = judgment.model_copy(update={"p_supported": support_probability(shares, part.task)})
    found = assign_quote_scores(steps, judgment, contradicted=shares.get(Label.INCORRECT, 0.0))
    return judgment.model_copy(update={"steps": found})


def reason_fields(label: Label, scale: LabelScheme) -> dict[str, Any]:
    """Return what a label alone tells: a judge that could have left it open, and did not, was contradicted by the sources."""
    told = label is Label.INCORRECT and Label.INCONCLUSIVE in scale.words.values()
    return {
        "inconclusive_reason": InconclusiveReason.UNSURE if label is Label.INCONCLUSIVE else None,
        "relation": Relation.CONTRADICTION if told else None,
    }


def support_probability(shares: LabelShares, task: Task) -> float:
    """Return the probability that the text is true: what is left open is true as often as not.

    A summary must stand in its document, so what is left open there counts against it (KnowHalu, section 4.3).
    """
    left_open = 0.0 if task is Task.SUMMARY else shares.get(Label.INCONCLUSIVE, 0.0) / 2
    return min(1.0, shares.get(Label.CORRECT, 0.0) + left_open)


def generate_judgment(
    request: Generate,
    form: KnowledgeForm | None = None,
    votes: int = 1,
    scale: LabelScheme = THREE_LABEL_SCHEME,
    *,
    think: RationaleGenerator | None = None,
    temperature: float = 1.0,
) -> Conversation[tuple[Judgment, LabelShares]]:
    """Judge once by the most probable label, or by the majority of several judgments that are drawn at a temperature.

    `think` asks for what comes before the label, and for the label: by default a rationale.
    """
    think = think or (lambda asked: generate_labelled_rationale(asked, scale))
    if votes > 1:
        judgment, shares = yield from _judge_by_votes(request, form, votes, think, temperature)
        return judgment.model_copy(update=reason_fields(judgment.label, scale)), shares
    rationale, label, shares = yield from think(request)
    why = reason_fields(label, scale)
    if shares:
        return Judgment(form=form, label=label, confidence=shares[label], rationale=rationale, **why), shares
    # a confidence of 0 is under every delta1, so Algorithm 1 asks the other form too, and over no delta2, so an unmeasured
    # supplement overrides only what is INCONCLUSIVE
    said = f"{rationale} {NO_PROBABILITY_NOTE.format(OTHER_FORM_NOTE if form else VOTES_HINT)}"
    return Judgment(form=form, label=label, confidence=0.0, rationale=said, confidence_source="none", **why), {label: 1.0}


def _judge_by_votes(
    request: Generate, form: KnowledgeForm | None, votes: int, think: RationaleGenerator, temperature: float
) -> Conversation[tuple[Judgment, LabelShares]]:
    """Draw several judgments; the majority's label counts, with its share as confidence."""
    drawn: list[tuple[str, Label]] = []
    for i in range(votes):
        rationale, label, _ = yield from think(replace(request, temperature=temperature, seed=request.seed + i))
        drawn.append((rationale, label))
    counts = Counter(label for _, label in drawn)
    best = max(TIE_ORDER, key=lambda one: counts[one])  # the first of equals
    rationale = next(r for r, label in drawn if label is best)
    said = f"{rationale} ({counts[best]} of {votes} votes)"
    judgment = Judgment(form=form, label=best, confidence=counts[best] / votes, rationale=said, confidence_source="votes")
    return judgment, {label: n / votes for label, n in counts.items()}


def generate_labelled_rationale(request: Generate, scale: LabelScheme = THREE_LABEL_SCHEME) -> Conversation[LabelledRationale]:
    """Ask for the rationale, then go on from it to the label; returns both, and the label's probabilities."""
    reply, rationale = yield from generate_with_retry(request, _rationale, lambda c: replace(request, prefill=scale.opening))
    lead = reply_prefix(reply.text, rationale, then=scale.heading) + "\n"
    label, shares = yield from generate_label(request, lead, scale)
    return rationale, label, shares


def generate_label(
    request: Generate, lead: str, scale: LabelScheme = THREE_LABEL_SCHEME, *, draw: bool = False
) -> Conversation[tuple[Label, LabelShares]]:
    """Go on from `lead`, a begun reply, to a word of the scale: the most probable one, or with `draw` the one that was drawn."""
    ask = replace(request, prefill=lead, stop=(), max_tokens=MAX_LABEL_TOKENS, choices=tuple(scale.words))
    restated = f"{lead}One of {', '.join(scale.words)}:\n"
    reply, label = yield from generate_with_retry(ask, lambda c: _label(c, scale, draw), lambda c: replace(ask, prefill=restated))
    return label, _label_shares(reply, scale)


def _label_shares(reply: Completion, scale: LabelScheme) -> LabelShares:
    """Return the probabilities of the labels, adding up to 1; none where the backend gave none that can be used."""
    given = {scale.words[name]: p for name, p in reply.choices.items() if name in scale.words}
    total = sum(given.values())
    if not all(p >= 0 for p in given.values()) or not 0 < total < float("inf"):
        return {}
    return {label: p / total for label, p in given.items()}


def _rationale(reply: Completion) -> str:
    text = split_sections(reply.text, JUDGMENT, ()).texts.get(JUDGMENT, "")
    if not any(c.isalnum() for c in text):
        raise ReplyError("judge", "the reply gives no reasons", reply=reply.text)
    return (complete_sentences(text) or text) if reply.finish_reason == "length" else text


def _label(reply: Completion, scale: LabelScheme, draw: bool) -> Label:
    """Return the most probable label; without probabilities, the last one that the reply has."""
    shares = {} if draw else _label_shares(reply, scale)
    if not shares:
        return read_label(reply.text, reply.text, scale.words)
    return max(shares, key=lambda one: (shares[one], one is scale.words.get(reply.text.strip())))
