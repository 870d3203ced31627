"""Runs for tests of the report: rows and outcomes written as a batch leaves them, without a model."""

import json
from html.parser import HTMLParser

from knowhalu.io.outcomes import format_outcome
from knowhalu.io.samples import hash_sample
from knowhalu.results import Evidence, Failure, Segment, Usage, Verdict
from knowhalu.types import HallucinationKind, Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Sample, Step, Triplet

SOURCE = "The tower is 330 metres high. It was finished in 1889."
RUN = {
    "version": "0.1.0",
    "settings": '{"method":"knowhalu","reasoner":"encoder"}',
    "verifier": "feedbeeffeedbeef",
    "prompts": "cafecafecafecafe",
    "index": "0123456789abcdef0123",
}


def sample(i, response="It is 300 metres high.", label="hallucinated", **more):
    return Sample(
        id=f"r{i}", question=f"How high is tower {i}?", response=response, knowledge=(f"{SOURCE} {i}",), label=label, **more
    )


def verdict(
    one, probability, *, hallucinated="settled", title="Tower", quote=SOURCE[:29], agree=None, rationale="a number differs"
):
    """Make the verdict of a sample: its first segment is its response, contradicted by a quote where it is hallucinated."""
    said = probability > 0.5 if hallucinated == "settled" else hallucinated
    label = {True: Label.INCORRECT, False: Label.CORRECT, None: Label.INCONCLUSIVE}[said]
    passage = Passage(id="knowledge-1", text=SOURCE, title=title, score=0.9, document="knowledge-1", end=len(SOURCE))
    known = Knowledge(form="unstructured", text=quote, triplets=(Triplet(subject="tower", predicate="height", object="330 m"),))
    step = Step(
        thought="Look for the height.",
        query=Query(specific="Is it 300?", general="How high?"),
        passages=(passage,),
        knowledge=known,
    )
    base = Judgment(
        form="unstructured", label=label, confidence=0.9, p_supported=1 - probability, rationale=rationale, steps=(step,)
    )
    other = Label.CORRECT if label is Label.INCORRECT else Label.INCORRECT
    supplement = (
        None if agree is None else base.model_copy(update={"form": KnowledgeForm.STRUCTURED, "label": label if agree else other})
    )
    evidence = Evidence(
        response_start=6, response_end=9, relation="contradicts" if said else "supports", probability=0.8, passage="knowledge-1",
        title=title, quote=quote, start=0, end=len(quote), document="knowledge-1", document_start=0,
    )  # fmt: skip
    segment = Segment(
        start=0, end=len(one.response), text=one.response, label=label, probability=probability, base=base, supplement=supplement,
        evidence=(evidence,),
    )  # fmt: skip
    return Verdict(
        id=one.id,
        task=one.task,
        method="knowhalu",
        label=label,
        hallucinated=said,
        kind=HallucinationKind.FACTUAL if said else None,
        probability=probability,
        reason=rationale,
        segments=(segment,),
        usage=Usage(pairs=3, prompt_tokens=100, cached_tokens=60),
        seconds={"total": 0.5},
    )


def failure(one, reason="the reply has no label"):
    return Failure(id=one.id, stage="judge", reason=reason, reply="I cannot say <b>that</b>")


def write_rows(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(s.model_dump_json(exclude_none=True) + "\n" for s in samples), encoding="utf-8")
    return path


def write_outcomes(path, samples, outcomes, run=RUN):
    """Write an outcome file as `knowhalu detect` does."""
    lines = [json.dumps({"run": run}), *(format_outcome(o, hash_sample(s)) for s, o in zip(samples, outcomes, strict=True))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def labelled(n=12):
    """Make rows of both labels, and verdicts that are right on two of three."""
    samples = [sample(i, label=["faithful", "hallucinated"][i % 2], meta={"type": "number"} if i % 2 else {}) for i in range(n)]
    outcomes = [verdict(s, 0.05 + 0.9 * ((i % 2) != (i % 3 == 0)) - 0.001 * i % 0.04, agree=[None, True, False][i % 3])
                for i, s in enumerate(samples)]  # fmt: skip
    return samples, outcomes


class Page(HTMLParser):
    """A page as a browser sees it: elements with their attributes, and the text of each kind of element."""

    VOID = {"meta", "input", "br", "hr", "img", "link"}

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open = [], {}, []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def all(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(k.rstrip("_")) == v for k, v in wanted.items())]

    def text(self, *but):
        return "".join(part for tag, parts in self.texts.items() if tag not in but for part in parts)
