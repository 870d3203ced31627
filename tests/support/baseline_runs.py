"""A scripted language model that says what it is told by the section that is open, and a way to run a baseline by name."""

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.engine.engine import Backends, Engine
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.options import BaselineOptions
from knowhalu.registry import import_object, method_card
from knowhalu.requests import Completion
from knowhalu.testing import ScriptedEncoder, ScriptedLLM
from knowhalu.text.sentences import chunks, content_words
from knowhalu.types import Document, Passage

LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")


class Model:
    """Say, by stage, one thing always, one after another from a list, or what a function makes of the request.

    A dict of probabilities stands for its likeliest choice. What is not told is an error of the test.
    """

    def __init__(self, **said):
        self.said, self.asked = said, []
        self.llm = ScriptedLLM(self._reply)

    def stages(self):
        return [stage for stage, _ in self.asked]

    def requests(self, stage):
        return [request for name, request in self.asked if name == stage]

    def _reply(self, request):
        stage = stage_of(request)
        before = self.stages().count(stage)
        self.asked.append((stage, request))
        said = self.said[stage]
        said = said[before] if isinstance(said, list) else said(request) if callable(said) else said
        return Completion(max(said, key=said.get), choices=said) if isinstance(said, dict) else said


def stage_of(request):
    """Name what a request asks for: the last open section of its prompt, or of the reply that is begun."""
    whole = (request.prompt + request.prefill).rstrip()
    return "label" if request.choices and "Yes" not in request.choices else whole.rpartition("### ")[2].partition(":")[0].lower()


class Shelf:
    """A search backend: the chunks of the given documents, or those of an index, by shared words."""

    def __init__(self, *texts):
        self.own, self.searches = tuple(Document(id=f"w{i}", title="", text=t) for i, t in enumerate(texts)), []

    def answer_many(self, requests):
        self.searches += requests
        return [[self._best(q, r) for q in r.queries] for r in requests]

    def _best(self, query, request):
        wanted = set(content_words(query))
        found = [
            Passage(id=f"{d.id}#{c.start}", document=d.id, title=d.title, text=c.text, start=c.start, end=c.end)
            for d in request.documents or self.own for c in chunks(d.text)
        ]  # fmt: skip
        return sorted(found, key=lambda p: -len(wanted & set(content_words(p.text))))[: request.k]


def check(name, sample, model=None, shelf=None, *, llm=None, encoder=None, **options):
    """Check a sample by a method of the table, made as a run makes it; returns the outcome."""
    card, options = method_card(name), BaselineOptions(**options)
    if encoder is not None:
        reasoner = import_object(card.reasoners["encoder"])(PACKAGED_VERIFIER)
        backends = Backends(entail=ScriptedEncoder(encoder), search=shelf or Shelf())
    else:
        reasoner = import_object(card.reasoners["llm"])(LLMOptions(**(llm or {})), options)
        backends = Backends(generate=(model or Model()).llm, search=shelf or Shelf())
    (outcome,) = Engine(import_object(card.make)(reasoner, options), backends).run([sample])
    return outcome
