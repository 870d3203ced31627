"""A scripted language model that thinks in KnowHalu's stages, and a way to run a check with it."""

from dataclasses import dataclass, field

from knowhalu.engine.engine import Backends, Engine
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.knowhalu.llm import KnowHaluLLM
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.requests import Completion, Generate
from knowhalu.retrieval.documents import MemoryRetriever
from knowhalu.testing import ScriptedLLM
from knowhalu.types import KnowledgeForm, Passage

NOTHING = "No specific information is available."


@dataclass
class Hop:
    thought: str
    specific: str
    general: str
    knowledge: str = NOTHING
    triplets: str = NOTHING


@dataclass
class Thinker:
    """What the model says in each stage; `raw` replies win, by (stage, how often it was asked before)."""

    hops: list[Hop] = field(default_factory=list)
    rationale: str = "Knowledge 1 settles it."
    choices: dict[str, float] = field(default_factory=lambda: {"CORRECT": 0.9, "INCORRECT": 0.06, "INCONCLUSIVE": 0.04})
    entity: str = "It"
    logprobs: tuple[float, ...] = (-0.1, -0.1)
    pieces: dict[str, float] = field(default_factory=dict)
    raw: dict[tuple[str, int], object] = field(default_factory=dict)

    def __post_init__(self):
        self.asked: list[tuple[str, Generate]] = []
        self.llm = ScriptedLLM(self.reply)

    def stages(self):
        return [stage for stage, _ in self.asked]

    def requests(self, stage):
        return [request for name, request in self.asked if name == stage]

    def reply(self, request):
        stage, number = stage_of(request)
        before = self.stages().count(stage)
        self.asked.append((stage, request))
        said = self.raw.get((stage, before))
        if said is not None:
            return said(request) if callable(said) else said
        return getattr(self, f"_{stage}")(request, number)

    def _extract(self, request, number):
        return " one thing\n### Reason: The answer gives a thing."

    def _entity(self, request, number):
        return Completion(f" {self.entity}", logprobs=self.logprobs)

    def _piece(self, request, number):
        return Completion(self.entity, choices=self.pieces)

    def _query(self, request, number):
        if number > len(self.hops):
            return f" All is settled.\n### Specific query {number}: Done"
        hop = self.hops[number - 1]
        return f" {hop.thought}\n### Specific query {number}: {hop.specific}\n### General query {number}: {hop.general}"

    def _knowledge(self, request, number):
        hop = next(h for h in self.hops if h.specific in request.prompt.rpartition("### Specific query: ")[2])
        return f" {hop.triplets if is_structured(request) else hop.knowledge}"

    def _judge(self, request, number):
        return f" {self.rationale}"

    def _label(self, request, number):
        best = max(self.choices, key=self.choices.get) if self.choices else "CORRECT"
        return Completion(best, choices=self.choices)


def is_structured(request):
    return "(subject, predicate, object)" in request.prompt[: request.fixed]


def stage_of(request):
    """Name the stage of a request, and for a query its step."""
    last = request.prompt.rpartition("\n")[2]
    if request.choices:
        return ("piece" if "NONE" in request.choices else "label"), 0
    if last == "### Asked for:":
        return ("entity" if "### Entity" in request.prefill else "extract"), 0
    if last == "### Knowledge:":
        return "knowledge", 0
    if last == "### Judgment:":
        return "judge", 0
    return "query", int(last.removeprefix("### Thought ").removesuffix(":"))


class Memory:
    """A search backend over a few passages."""

    def __init__(self, texts):
        self.retriever = MemoryRetriever([Passage(id=t, title=t, text=text, end=len(text)) for t, text in texts.items()])

    def answer_many(self, requests):
        return [self.retriever.search(r.queries, r.k) for r in requests]


def check(thinker, sample, texts=None, *, formulation="combined", llm=None, **options):
    """Check one sample and return the outcome."""
    options = KnowHaluOptions(formulation=formulation, **options)
    method = KnowHalu(KnowHaluLLM(LLMOptions(**(llm or {})), options), options)
    (outcome,) = Engine(method, Backends(generate=thinker.llm, search=Memory(texts or {}))).run([sample])
    return outcome


BOTH = {"second_opinion": "always"}
BASE, OTHER = KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED
