"""Every request that a method makes of a language model, rendered from prompt files and worked examples."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field, model_validator

from knowhalu.prompts import format as layout
from knowhalu.prompts.claim_replies import JudgedClaim, listed
from knowhalu.prompts.examples import Checked, Source, Text, examples_file, load_examples, read_examples
from knowhalu.prompts.format import JUDGMENT, LABEL, Formulation, checked, checked_sample, passage_lines
from knowhalu.prompts.generate import asking
from knowhalu.prompts.template import Prompt, Shown, joined, load_prompt, section, shield
from knowhalu.requests import Generate
from knowhalu.settings import LLMOptions
from knowhalu.types import Form, Label, Passage, Query, Record, Sample, Step, Task

DEMONSTRATIONS = "demonstrations"
HOLES = {
    "extract": (DEMONSTRATIONS, "sample"),
    "query": (DEMONSTRATIONS, "sample", "steps"),
    "knowledge": (DEMONSTRATIONS, "passages", "query"),
    "judge": (DEMONSTRATIONS, "sample", "steps"),
}
"""The prompts and what fills their holes; a prompt may leave out the demonstrations."""


class PromptBook:
    """Render requests; the prompts and demonstrations of the options' folder win over the packaged ones.

    Raises PromptError, when it is made, where a prompt or an example file cannot be used.
    """

    def __init__(self, options: LLMOptions | None = None, formulation: Formulation = "combined") -> None:
        self.options, self.formulation = options or LLMOptions(), formulation
        self.folder = self.options.prompts
        self._settled = cache(self._settle)
        for name in HOLES:
            for task in (Task.QA,) if name == "extract" else Task:
                for form in Form:
                    self._settled(name, task, form)

    def extract(self, question: str, answer: str) -> Generate:
        """Ask what the question asks for, and what of it the answer has."""
        sample = layout.checked(Task.QA, {"question": question, "answer": answer})
        return self._request("extract", Task.QA, Form.UNSTRUCTURED, sample=sample)

    def query(self, part: Sample, steps: Sequence[Step], form: Form) -> Generate:
        """Ask for the next thought and query."""
        grown = [*layout.asked_steps(steps, self.formulation), section(f"{layout.THOUGHT} {len(steps) + 1}")]
        return self._request("query", part.task, form, sample=layout.checked_sample(part), steps=joined(grown))

    def knowledge(self, part: Sample, query: Query, passages: Sequence[Passage], form: Form) -> Generate:
        """Ask what the passages say of a query."""
        shown, wanted = joined(layout.passage_lines(passages)), joined(layout.query_lines(query, self.formulation))
        return self._request("knowledge", part.task, form, passages=shown, query=wanted)

    def judge(self, part: Sample, steps: Sequence[Step], form: Form) -> Generate:
        """Ask what the knowledge confirms and contradicts; the label comes after that."""
        found = joined(layout.found_steps(steps, self.formulation))
        return self._request("judge", part.task, form, sample=layout.checked_sample(part), steps=found)

    def _request(self, name: str, task: Task, form: Form, **values: Shown) -> Generate:
        return asking(self._settled(name, task, form), self.options, **values)

    def _settle(self, name: str, task: Task, form: Form) -> Prompt:
        """Choose the words of a prompt and show its demonstrations, once for all samples; raises PromptError."""
        prompt = load_prompt(f"knowhalu/{name}", self.folder)
        shown = {DEMONSTRATIONS: self._shown(name, task, form)} if DEMONSTRATIONS in prompt.holes else {}
        settled = prompt.settled(task, form, self.formulation, **shown)
        settled.render(**dict.fromkeys(HOLES[name][1:], "x"))  # a prompt with other holes is refused here, not in every check
        return settled

    def _shown(self, name: str, task: Task, form: Form) -> Shown:
        examples = load_examples(task, self.folder)
        if name == "extract":
            return layout.shown_extractions(examples)
        if name == "query":
            return layout.shown_queries(examples, task, form, self.formulation)
        if name == "knowledge":
            return layout.shown_knowledge(examples, form, self.formulation)
        return layout.shown_judgments(examples, task, form, self.formulation)


BASELINES, DEMONSTRATIONS = "baselines", "demonstrations"
CLAIMS, CLAIM = "Claims", "Claim"
BINARY = (Label.CORRECT, Label.INCORRECT)


class ExampleClaim(Record):
    """One claim of an example, judged by the example's passages."""

    text: Text
    reason: Text
    label: Label


class JudgedExample(Checked):
    """A text, its passages, and what a judge should say of it."""

    passages: tuple[Source, ...] = Field(min_length=1)
    rationale: Text
    label: Label
    claims: tuple[ExampleClaim, ...] = Field(min_length=1)

    def sources(self) -> list[Shown]:
        """Show the passages as a check shows them."""
        return passage_lines(Passage(id=str(i), title=p.title, text=p.text) for i, p in enumerate(self.passages, 1))


Show = Callable[[JudgedExample, Task], Iterable[Shown]]


def _labels(example: JudgedExample, task: Task) -> Iterable[Shown]:
    yield joined([*example.sources(), checked(task, example.fields(task)), section(LABEL), Shown(example.label)])


def _from_memory(example: JudgedExample, task: Task) -> Iterable[Shown]:
    """Show a text without passages, but where they are what it was made from; only what is decided can be shown so."""
    if example.label in BINARY:
        yield joined([*_own(example, task), section(LABEL), Shown(example.label)])


def _reasons(example: JudgedExample, task: Task) -> Iterable[Shown]:
    if example.label in BINARY:
        yield joined([*_own(example, task), section(JUDGMENT, example.rationale), section(LABEL), Shown(example.label)])


def _decided(example: JudgedExample, task: Task) -> Iterable[Shown]:
    return _labels(example, task) if example.label in BINARY else ()


def _own(example: JudgedExample, task: Task) -> list[Shown]:
    passages = example.sources() if task in (Task.RAG, Task.SUMMARY) else []
    return [*passages, checked(task, example.fields(task))]


def _judged_claims(example: JudgedExample, task: Task) -> Iterable[Shown]:
    lines = listed(JudgedClaim(c.text.rstrip("."), c.label) for c in example.claims)
    whole = checked(task, example.fields(task))
    yield joined([*example.sources(), whole, section(CLAIMS), lines, section(LABEL), Shown(example.label)])


def _claims(example: JudgedExample, task: Task) -> Iterable[Shown]:
    lines = (Shown(f"{i}. {shield(c.text)}") for i, c in enumerate(example.claims, 1))
    yield joined([checked(task, example.fields(task)), section(CLAIMS), *lines])


def _verdicts(example: JudgedExample, task: Task) -> Iterable[Shown]:
    claims = [c for c in example.claims if c.label is example.label]  # one of each label: as many of each are shown
    for claim in claims[:1]:
        lines = [section(CLAIM, claim.text), section(JUDGMENT, claim.reason), section(LABEL), Shown(claim.label)]
        yield joined([*example.sources(), *lines])


PROMPTS: dict[str, tuple[tuple[str, ...], Show | None]] = {
    "halueval": (("sample",), _from_memory),
    "halueval_knowledge": (("sample",), _decided),
    "halueval_cot": (("sample",), _reasons),
    "zero_shot_cot": (("sample",), None),
    "few_shot": (("sample",), _labels),
    "factored_single": (("sample",), _judged_claims),
    "answer": (("sample",), None),
    "supported": (("context", "sentence"), None),
    "claims": (("sample",), _claims),
    "verdict": (("passages", "claim"), _verdicts),
}
"""What fills the holes of each prompt after the demonstrations, and what of an example demonstrates it."""


class BaselineBook:
    """Render the requests of some prompts; those of the options' folder win over the packaged ones.

    Raises PromptError, when it is made, where one of them or an example file cannot be used.
    """

    def __init__(self, options: LLMOptions, names: Sequence[str]) -> None:
        self.options = options
        self._settled = cache(self._settle)
        for name in names:
            for task in Task:
                self._settled(name, task)

    def request(self, name: str, task: Task, **values: Shown) -> Generate:
        """Render one request."""
        return asking(self._settled(name, task), self.options, **values)

    def judge(self, name: str, sample: Sample, passages: Iterable[Passage]) -> Generate:
        """Ask for a judgment of a sample, with the passages above it."""
        return self.request(name, sample.task, sample=joined([*passage_lines(passages), checked_sample(sample)]))

    def _settle(self, name: str, task: Task) -> Prompt:
        holes, show = PROMPTS[name]
        prompt = load_prompt(f"{BASELINES}/{name}", self.options.prompts)
        values: dict[str, Shown] = {}
        if show and DEMONSTRATIONS in prompt.holes:
            examples = load_judged(task, self.options.prompts)
            values[DEMONSTRATIONS] = Shown("\n\n".join(shown for example in examples for shown in show(example, task)))
        settled = prompt.settled(task, **values)
        settled.render(**dict.fromkeys(holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled


@cache
def load_judged(task: Task, folder: Path | None = None) -> tuple[JudgedExample, ...]:
    """Load the judged examples of a task; raises PromptError."""
    return read_examples(examples_file(task, folder, BASELINES), JudgedExample, task)


CLAIM_HEADING, CLAIMS_HEADING, REASONING, SUPPORTED = "Claim", "Claims", "Reasoning", "Supported"
YES, NO, NONE = "Yes", "No", "none"
FACTORED = "factored"


class ClaimsExample(Record):
    """A text and the claims of each of its sentences."""

    question: str = ""
    before: str = ""
    sentences: tuple[Text, ...] = Field(min_length=1)
    claims: tuple[tuple[Text, ...], ...]

    @model_validator(mode="after")
    def _of_each_sentence(self) -> "ClaimsExample":
        if len(self.claims) != len(self.sentences):
            raise ValueError("give the claims of each sentence, [] where it has none")
        return self


class SupportedExample(Record):
    """A claim, its sources, and whether they support it."""

    sources: tuple[Source, ...] = Field(min_length=1)
    claim: Text
    reasoning: Text
    supported: bool


class FactoredBook:
    """Render the requests; raises PromptError, when it is made, where a prompt or an example file cannot be used."""

    def __init__(self, options: LLMOptions, *, reasons: bool = True) -> None:
        self.options, self.reasons = options, reasons
        folder = options.prompts
        shown = [_claims_shown(e) for e in read_examples(examples_file("claims", folder, FACTORED), ClaimsExample)]
        self._claims = self._settled("claims", shown, ("text",))
        judged = [self._supported_shown(e) for e in read_examples(examples_file("supported", folder, FACTORED), SupportedExample)]
        self._supported = self._settled("supported", judged, ("sources", "claim"))

    def claims(self, question: str | None, before: str, sentences: Sequence[str]) -> Generate:
        """Ask for the claims of these sentences; `before` is the text that they follow."""
        return asking(self._claims, self.options, text=_text_shown(question or "", before, sentences))

    def supported(self, question: str | None, claim: str, passages: Iterable[Passage]) -> Generate:
        """Ask whether passages support a claim: for the reasons first, or at once for the label."""
        asked = [section("Question", question)] if question else []
        shown = [*asked, section(CLAIM_HEADING, claim), section(REASONING if self.reasons else SUPPORTED)]
        return asking(self._supported, self.options, sources=_sources_shown(map(str, passages)), claim=joined(shown))

    def _settled(self, name: str, shown: Sequence[Shown], holes: Sequence[str]) -> Prompt:
        prompt = load_prompt(f"{FACTORED}/{name}", self.options.prompts)
        fixed = {"demonstrations": Shown("\n\n".join(shown))} if "demonstrations" in prompt.holes else {}
        settled = prompt.settled(**fixed)
        settled.render(**dict.fromkeys(holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled

    def _supported_shown(self, example: SupportedExample) -> Shown:
        why = [section(REASONING, example.reasoning)] if self.reasons else []
        sources = _sources_shown(f"{s.title}: {s.text}" if s.title else s.text for s in example.sources)
        said = Shown(YES if example.supported else NO)
        return joined([sources, section(CLAIM_HEADING, example.claim), *why, section(SUPPORTED), said])


def claim_lines(claims: Iterable[tuple[int, str]]) -> str:
    """Write claims as the model is to write them, each with the number of its sentence."""
    return "\n".join(f"{number}: {claim}" for number, claim in claims)


def _text_shown(question: str, before: str, sentences: Sequence[str]) -> Shown:
    head = [section(name, text) for name, text in (("Question", question), ("Before", before)) if text]
    return joined([*head, *(section(f"Sentence {i}", s) for i, s in enumerate(sentences, 1)), section(CLAIMS_HEADING)])


def _claims_shown(example: ClaimsExample) -> Shown:
    listed = [(i, claim) for i, claims in enumerate(example.claims, 1) for claim in claims or (NONE,)]
    return joined([_text_shown(example.question, example.before, example.sentences), Shown(claim_lines(listed))])


def _sources_shown(texts: Iterable[str]) -> Shown:
    return joined(section(f"Source {i}", text) for i, text in enumerate(texts, 1))
