"""A method that decides by a word in the response, so that commands and jobs are tested without a model."""

import json
import threading
from functools import cached_property
from pathlib import Path

from knowhalu.api import Checker
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import StageError
from knowhalu.io.outcomes import parse_outcome
from knowhalu.results import Evidence, Failure, Segment, Verdict
from knowhalu.types import (
    Extraction,
    HallucinationKind,
    InconclusiveReason,
    Judgment,
    Knowledge,
    KnowledgeForm,
    Label,
    Passage,
    Query,
    Sample,
    Step,
    Task,
)

EXTRACTION = Extraction(entity="Mars", asked_for="a planet", reason="it is named", confidence=0.9)
TOLD = {"wrong": Label.INCORRECT, "unsure": Label.INCONCLUSIVE}


class Scripted:
    """ "wrong" in the response is a hallucination, "unsure" abstains, "broken" fails."""

    name = "scripted"

    def __init__(self):
        self.broken = {"broken"}
        self.checked = []
        self.thread = None

    def check(self, sample: Sample):
        self.checked.append(sample.id)
        self.thread = threading.current_thread()
        words = set(sample.response.split())
        if words & self.broken:
            raise StageError("judge", "the reply has no label", reply="gibberish")
        yield from ()
        label = next((label for word, label in TOLD.items() if word in words), Label.CORRECT)
        hallucinated = {Label.CORRECT: False, Label.INCORRECT: True, Label.INCONCLUSIVE: None}[label]
        return Verdict(
            id=sample.id,
            task=sample.task,
            method=self.name,
            label=label,
            hallucinated=hallucinated,
            kind=HallucinationKind.FACTUAL if hallucinated else None,
            probability={True: 0.97, False: 0.02, None: 0.5}[hallucinated],
            inconclusive_reason=InconclusiveReason.UNSURE if hallucinated is None else None,
            reason="decided by a word",
            segments=(segment_of(sample, label),),
            extraction=EXTRACTION if sample.question else None,
        )


def segment_of(sample: Sample, label: Label) -> Segment:
    source = (*sample.knowledge, *(d.text for d in sample.documents), "Nothing is known.")[0]
    step = Step(
        thought="look for the planet",
        query=Query(specific="Is it Mars?", general="Which planet is it?"),
        passages=(Passage(id="p1", text=source, title="Planets", score=0.8),),
        knowledge=Knowledge(form=KnowledgeForm.UNSTRUCTURED, text=source),
    )
    judgment = Judgment(
        form=KnowledgeForm.UNSTRUCTURED, label=label, confidence=0.9, rationale="the source says so", steps=(step,)
    )
    evidence = Evidence(
        response_start=0, response_end=len(sample.response), probability=0.97,
        relation="contradicts" if label is Label.INCORRECT else "supports",
        passage="p1", title="Planets", quote=source, start=0, end=len(source), document="d1", document_start=0,
    )  # fmt: skip
    return Segment(
        start=0, end=len(sample.response), text=sample.response, label=label, probability=0.5, base=judgment,
        evidence=() if label is Label.INCONCLUSIVE else (evidence,),
    )  # fmt: skip


class ScriptedChecker(Checker):
    """A checker with a scripted engine and a fingerprint of choice."""

    run = {"version": "1", "settings": '{"method":"scripted","engine":{"batch":1}}'}
    llm_identity = ""

    @cached_property
    def method(self):
        return Scripted()

    @cached_property
    def engine(self):
        return Engine(self.method, Backends(), in_flight=4)

    @cached_property
    def fingerprint(self):
        return dict(self.run)


ROWS = [
    {"id": "a", "claim": "right\u2028", "knowledge": "k", "label": "faithful"},
    {"id": "b", "claim": "wrong", "knowledge": "k", "label": "hallucinated"},
    {"id": "c", "claim": "broken", "knowledge": "k"},
    {"id": "ü\n", "claim": "unsure", "knowledge": "k"},
]


class Plain(ScriptedChecker):
    """Checks without the engine's threads, so that a test may start thousands of jobs."""

    def stream(self, samples):
        for sample in samples:
            self.method.checked.append(sample.id)
            if set(sample.response.split()) & self.method.broken:
                yield Failure(id=sample.id, stage="judge", reason="the reply has no label")
            else:
                is_wrong = "wrong" in sample.response
                label = "INCORRECT" if is_wrong else "CORRECT"
                yield Verdict(id=sample.id, task=Task.CLAIM, method="m", label=label, hallucinated=is_wrong, kind=None,
                              probability=0.25, reason=sample.response)  # fmt: skip


def write(path: Path, rows: list[dict]) -> None:
    path.write_bytes("".join(json.dumps(r) + "\n" for r in rows).encode())


def outcomes(path: Path) -> list:
    head, *lines = path.read_bytes().split(b"\n")[:-1]
    assert list(json.loads(head)) == ["run"]
    return [parse_outcome(line) for line in lines]
