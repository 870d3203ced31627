"""A scripted language model that thinks in the stages of Factored Verification, and a way to run a check with it."""

from dataclasses import dataclass, field

from knowhalu.engine.engine import Backends, Engine
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.factored.llm import FactoredLLM
from knowhalu.methods.factored.method import Factored, FactoredAcademic
from knowhalu.methods.options import FactoredOptions
from knowhalu.prompts.replies import one_line
from knowhalu.prompts.shielding import unshield
from knowhalu.prompts.template import SECTION
from knowhalu.requests import Completion
from knowhalu.testing import ScriptedLLM
from tests.support.thinking import Memory


@dataclass
class Verifier:
    """What the model says: P(Yes) by claim (0.9 for others), reasons, claims by sentence (the sentence itself for others).

    `raw` replies win, by (stage, how often it was asked before).
    """

    yes: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    claims: dict[str, list[str]] = field(default_factory=dict)
    measures: bool = True
    raw: dict[tuple[str, int], object] = field(default_factory=dict)

    def __post_init__(self):
        self.asked = []
        self.llm = ScriptedLLM(self.reply)

    def stages(self):
        return [stage for stage, _ in self.asked]

    def requests(self, stage):
        return [request for name, request in self.asked if name == stage]

    def reply(self, request):
        last = request.prompt.rpartition("\n")[2]
        stage = "label" if request.choices else "claims" if last == "### Claims:" else "reasons"
        before = self.stages().count(stage)
        self.asked.append((stage, request))
        said = self.raw.get((stage, before))
        if said is not None:
            return said(request) if callable(said) else said
        return getattr(self, f"_{stage}")(request)

    def _claims(self, request):
        texts = [text for name, text in shown(request) if name.startswith("Sentence")]
        listed = [(i, claim) for i, text in enumerate(texts, 1) for claim in self.claims.get(text, [text]) or ["none"]]
        return "\n" + "\n".join(f"{i}: {claim}" for i, claim in listed)

    def _reasons(self, request):
        return f" {self.reasons.get(claim_of(request), 'The sources say so.')}"

    def _label(self, request):
        p = self.yes.get(claim_of(request), 0.9)
        return Completion("Yes" if p >= 0.5 else "No", choices={"Yes": p, "No": 1 - p} if self.measures else {})


def shown(request):
    """Return the sections after the fixed part, by name and text."""
    tail = request.prompt[request.fixed :]
    found = list(SECTION.finditer(tail))
    ends = [*(m.start() for m in found[1:]), len(tail)]
    return [(m[1], one_line(unshield(tail[m.end() : end]))) for m, end in zip(found, ends, strict=True)]


def claim_of(request):
    return dict(shown(request))["Claim"]


def check(verifier, sample, texts=None, *, llm=None, academic=False, **options):
    """Check one sample and return the outcome."""
    settings = FactoredOptions(**options)
    kind = FactoredAcademic if academic else Factored
    method = kind(FactoredLLM(LLMOptions(**(llm or {})), settings), settings)
    (outcome,) = Engine(method, Backends(generate=verifier.llm, search=Memory(texts or {}))).run([sample])
    return outcome
