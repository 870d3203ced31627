"""Judgments by an LLM: the rationale first, then a label under constraint, whose probability is the confidence.

Labels that the rationale mentions do not matter: the label is chosen after it, by default out of three. Its confidence is the
probability of the label among the three (KnowHalu, section 3.2 e), or the share of equal votes where several judgments are drawn;
None where neither was measured.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.methods.common.attribution import assign_quote_scores
from knowhalu.methods.common.verdict import NO_EVIDENCE, missing_evidence_reason
from knowhalu.prompts.format import JUDGMENT, LABEL
from knowhalu.prompts.replies import complete_sentences, generate_with_retry, read_label, reply_prefix, split_sections
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.types import InconclusiveReason, Judgment, KnowledgeForm, Label, Relation, Sample, Step, Task

MAX_LABEL_TOKENS = 16
RATIONALE_OPENING = " Each detail is held against the knowledge in turn."
"""Begins a rationale that the model did not begin itself."""
NO_PROBABILITY_NOTE = "(the model gave no probability for its label{})"
OTHER_FORM_NOTE = ", so the other form of knowledge is asked too"
NO_REASONS_NOTE = "No reasons were asked for."
VOTES_HINT = "; --set llm.votes=20 measures it by votes"


class LabelScheme(NamedTuple):
    """The labels that a model chooses from, and the words of the conversation around the choice.

    `words` are the labels as the model writes them, `heading` opens the label, and `opening` begins a rationale that the model
    could not begin itself. `rationale` is the heading of the rationale, `ends` are further headings that end it, and `hint` names
    the labels where a first reply had none. `read` reads the label where the backend gives no probabilities. Of labels with
    equally many votes, the first of `ties` counts. A reply that cannot be read fails in `stage`.
    """

    words: Mapping[str, Label]
    heading: str = LABEL
    opening: str = RATIONALE_OPENING
    rationale: str = JUDGMENT
    ends: tuple[str, ...] = ()
    hint: str = ""
    max_tokens: int = MAX_LABEL_TOKENS
    read: Callable[[str, str, Mapping[str, Label]], Label] = read_label
    ties: tuple[Label, ...] = (Label.INCONCLUSIVE, Label.INCORRECT, Label.CORRECT)
    stage: str = "judge"


THREE_LABEL_SCHEME = LabelScheme({str(label): label for label in (Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE)})
LabelShares = dict[Label, float]
"""Probabilities of labels, or their shares of the votes, adding up to 1; empty where the backend gave none."""
LabelledRationale = tuple[str, Label, LabelShares]
"""A rationale, the label after it, and the label's probabilities where the backend gave them."""
RationaleGenerator = Callable[[Generate], Conversation[LabelledRationale]]


class MeasuredLabel(NamedTuple):
    """A label with its rationale, the shares of all labels, and where these come from."""

    rationale: str
    label: Label
    shares: LabelShares
    confidence_source: Literal["probability", "votes", "none"]


def judge_knowledge(
    request: Generate, part: Sample, steps: Sequence[Step], form: KnowledgeForm, votes: int = 1
) -> Conversation[Judgment]:
    """Judge by the knowledge of all steps; `request` asks for the rationale.

    Where no step has any knowledge, the judgment is INCONCLUSIVE without a request: a model would answer from memory.
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
    found = assign_quote_scores(steps, judgment, contradicted=label_share(shares, Label.INCORRECT))
    return judgment.model_copy(update={"steps": found})


def reason_fields(label: Label, scale: LabelScheme) -> dict[str, Any]:
    """Return the reason and relation that follow from a label: INCORRECT is a contradiction where INCONCLUSIVE was a choice."""
    contradicts = label is Label.INCORRECT and Label.INCONCLUSIVE in scale.words.values()
    return {
        "inconclusive_reason": InconclusiveReason.UNSURE if label is Label.INCONCLUSIVE else None,
        "relation": Relation.CONTRADICTION if contradicts else None,
    }


def label_share(shares: LabelShares, label: Label) -> float | None:
    """Return the share of a label; None where nothing was measured."""
    return min(1.0, shares.get(label, 0.0)) if shares else None


def support_probability(shares: LabelShares, task: Task) -> float | None:
    """Return P(supported): half of the share of INCONCLUSIVE counts as support; None where nothing was measured.

    In a summary it counts as unsupported (KnowHalu, section 4.3).
    """
    if not shares:
        return None
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

    `think` generates what comes before the label, by default a rationale, and the label.
    """
    rationale, label, shares, source = yield from measure_label(request, votes, scale, think=think, temperature=temperature)
    if source == "none":
        rationale = f"{rationale} {NO_PROBABILITY_NOTE.format(OTHER_FORM_NOTE if form else VOTES_HINT)}"
    judgment = Judgment(
        form=form,
        label=label,
        confidence=label_share(shares, label),
        rationale=rationale,
        confidence_source=source,
        **reason_fields(label, scale),
    )
    return judgment, shares


def measure_label(
    request: Generate,
    votes: int = 1,
    scale: LabelScheme = THREE_LABEL_SCHEME,
    *,
    think: RationaleGenerator | None = None,
    temperature: float = 1.0,
) -> Conversation[MeasuredLabel]:
    """Choose the most probable label, or that of the majority of several judgments drawn at a temperature.

    The shares are probabilities or shares of the votes; there are none where the backend gives no probabilities.
    """
    think = think or partial(generate_labelled_rationale, scale=scale)
    if votes > 1:
        return (yield from _count_votes(request, votes, scale, think, temperature))
    rationale, label, shares = yield from think(request)
    if shares:
        return MeasuredLabel(rationale, label, shares, "probability")
    return MeasuredLabel(rationale, label, {}, "none")


def _count_votes(
    request: Generate, votes: int, scale: LabelScheme, think: RationaleGenerator, temperature: float
) -> Conversation[MeasuredLabel]:
    """Draw several judgments; the majority's label counts, with the first rationale that led to it."""
    drawn: list[tuple[str, Label]] = []
    for i in range(votes):
        rationale, label, _ = yield from think(replace(request, temperature=temperature, seed=request.seed + i))
        drawn.append((rationale, label))
    counts = Counter(label for _, label in drawn)
    best = max(scale.ties, key=lambda label: counts[label])  # the first of equals
    rationale = next(r for r, label in drawn if label is best)
    shares = {label: n / votes for label, n in counts.items()}
    return MeasuredLabel(f"{rationale} ({counts[best]} of {votes} votes)", best, shares, "votes")


def generate_labelled_rationale(request: Generate, scale: LabelScheme = THREE_LABEL_SCHEME) -> Conversation[LabelledRationale]:
    """Ask for the rationale, then go on from it to the label."""
    reply, rationale = yield from generate_with_retry(
        request, lambda c: _read_rationale(c, scale), lambda c: replace(request, prefill=scale.opening)
    )
    lead = reply_prefix(reply.text, rationale, then=scale.heading) + "\n"
    label, shares = yield from generate_label(request, lead, scale)
    return rationale, label, shares


def generate_bare_label(request: Generate, scale: LabelScheme = THREE_LABEL_SCHEME) -> Conversation[LabelledRationale]:
    """Ask for the label alone; at a temperature, the label that was drawn is the vote."""
    label, shares = yield from generate_label(request, "\n", scale, draw=request.temperature > 0)
    return NO_REASONS_NOTE, label, shares


def generate_label(
    request: Generate, lead: str, scale: LabelScheme = THREE_LABEL_SCHEME, *, draw: bool = False
) -> Conversation[tuple[Label, LabelShares]]:
    """Continue the reply `lead` with a label of the scheme: the most probable one, or with `draw` the sampled one."""
    ask = replace(request, prefill=lead, stop=(), max_tokens=scale.max_tokens, choices=tuple(scale.words))
    hint = scale.hint or f"One of {', '.join(scale.words)}"
    restated = replace(ask, prefill=f"{lead}{hint}:\n")
    reply, label = yield from generate_with_retry(ask, lambda c: _read_label(c, scale, draw), lambda c: restated)
    return label, _label_shares(reply, scale)


def _label_shares(reply: Completion, scale: LabelScheme) -> LabelShares:
    """Return the probabilities of the labels, adding up to 1; none where the backend gave none that can be used."""
    given = {scale.words[name]: p for name, p in reply.choices.items() if name in scale.words}
    total = sum(given.values())
    if not all(p >= 0 for p in given.values()) or not 0 < total < float("inf"):
        return {}
    return {label: p / total for label, p in given.items()}


def _read_rationale(reply: Completion, scale: LabelScheme) -> str:
    text = split_sections(reply.text, scale.rationale, scale.ends).texts.get(scale.rationale, "")
    if not any(c.isalnum() for c in text):
        raise ReplyError(scale.stage, "the reply gives no reasons", reply=reply.text)
    return (complete_sentences(text) or text) if reply.finish_reason == "length" else text


def _read_label(reply: Completion, scale: LabelScheme, draw: bool) -> Label:
    """Return the most probable label; without probabilities, the one that the reply names."""
    shares = {} if draw else _label_shares(reply, scale)
    if not shares:
        return scale.read(reply.text, reply.text, scale.words)
    return max(shares, key=lambda label: (shares[label], label is scale.words.get(reply.text.strip())))
