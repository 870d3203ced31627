"""Every request that a method makes of a language model, rendered from prompt files and worked examples."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field, model_validator

from knowhalu.llm.options import LLMOptions
from knowhalu.prompts import format as layout
from knowhalu.prompts.claim_replies import JudgedClaim, format_judged_claims
from knowhalu.prompts.examples import ExampleInput, ExampleSource, ExampleText, examples_file, load_examples, read_examples
from knowhalu.prompts.format import JUDGMENT, LABEL, Formulation, format_fields, format_passages, format_sample
from knowhalu.prompts.generate import make_request
from knowhalu.prompts.template import Prompt, PromptText, join_sections, load_prompt, section, shield
from knowhalu.requests import Generate
from knowhalu.types import KnowledgeForm, Label, Passage, Query, Record, Sample, Step, Task

DEMONSTRATIONS = "demonstrations"
KNOWHALU_HOLES = {
    "extract": (DEMONSTRATIONS, "sample"),
    "query": (DEMONSTRATIONS, "sample", "steps"),
    "knowledge": (DEMONSTRATIONS, "passages", "query"),
    "judge": (DEMONSTRATIONS, "sample", "steps"),
}
"""The prompts and what fills their holes; a prompt may leave out the demonstrations."""


class KnowHaluPromptBook:
    """Render requests; the prompts and demonstrations of the options' folder win over the packaged ones.

    Raises PromptError, when it is made, where a prompt or an example file cannot be used.
    """

    def __init__(self, options: LLMOptions | None = None, formulation: Formulation = "combined") -> None:
        self.options, self.formulation = options or LLMOptions(), formulation
        self.folder = self.options.prompts
        self._settled = cache(self._settle)
        for name in KNOWHALU_HOLES:
            for task in (Task.QA,) if name == "extract" else Task:
                for form in KnowledgeForm:
                    self._settled(name, task, form)

    def extract(self, question: str, answer: str) -> Generate:
        """Ask what the question asks for, and what of it the answer has."""
        sample = layout.format_fields(Task.QA, {"question": question, "answer": answer})
        return self._request("extract", Task.QA, KnowledgeForm.UNSTRUCTURED, sample=sample)

    def query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Generate:
        """Ask for the next thought and query."""
        grown = [*layout.format_steps_with_thoughts(steps, self.formulation), section(f"{layout.THOUGHT} {len(steps) + 1}")]
        return self._request("query", part.task, form, sample=layout.format_sample(part), steps=join_sections(grown))

    def knowledge(self, part: Sample, query: Query, passages: Sequence[Passage], form: KnowledgeForm) -> Generate:
        """Ask what the passages say of a query."""
        shown, wanted = (
            join_sections(layout.format_passages(passages)),
            join_sections(layout.format_query(query, self.formulation)),
        )
        return self._request("knowledge", part.task, form, passages=shown, query=wanted)

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Generate:
        """Ask what the knowledge confirms and contradicts; the label comes after that."""
        found = join_sections(layout.format_steps(steps, self.formulation))
        return self._request("judge", part.task, form, sample=layout.format_sample(part), steps=found)

    def _request(self, name: str, task: Task, form: KnowledgeForm, **values: PromptText) -> Generate:
        return make_request(self._settled(name, task, form), self.options, **values)

    def _settle(self, name: str, task: Task, form: KnowledgeForm) -> Prompt:
        """Choose the words of a prompt and show its demonstrations, once for all samples; raises PromptError."""
        prompt = load_prompt(f"knowhalu/{name}", self.folder)
        shown = {DEMONSTRATIONS: self._shown(name, task, form)} if DEMONSTRATIONS in prompt.holes else {}
        settled = prompt.settled(task, form, self.formulation, **shown)
        settled.render(
            **dict.fromkeys(KNOWHALU_HOLES[name][1:], "x")
        )  # a prompt with other holes is refused here, not in every check
        return settled

    def _shown(self, name: str, task: Task, form: KnowledgeForm) -> PromptText:
        examples = load_examples(task, self.folder)
        if name == "extract":
            return layout.demonstrate_extractions(examples)
        if name == "query":
            return layout.demonstrate_queries(examples, task, form, self.formulation)
        if name == "knowledge":
            return layout.demonstrate_knowledge(examples, form, self.formulation)
        return layout.demonstrate_judgments(examples, task, form, self.formulation)


BASELINES_FAMILY, DEMONSTRATIONS = "baselines", "demonstrations"
CLAIMS, CLAIM = "Claims", "Claim"
BINARY_LABELS = (Label.CORRECT, Label.INCORRECT)


class ExampleClaim(Record):
    """One claim of an example, judged by the example's passages."""

    text: ExampleText
    reason: ExampleText
    label: Label


class JudgedExample(ExampleInput):
    """A text, its passages, and what a judge should say of it."""

    passages: tuple[ExampleSource, ...] = Field(min_length=1)
    rationale: ExampleText
    label: Label
    claims: tuple[ExampleClaim, ...] = Field(min_length=1)

    def sources(self) -> list[PromptText]:
        """Show the passages as a check shows them."""
        return format_passages(Passage(id=str(i), title=p.title, text=p.text) for i, p in enumerate(self.passages, 1))


ExampleRenderer = Callable[[JudgedExample, Task], Iterable[PromptText]]


def _labels(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    yield join_sections(
        [*example.sources(), format_fields(task, example.fields(task)), section(LABEL), PromptText(example.label)]
    )


def _from_memory(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    """Show a text without passages, but where they are what it was made from; only what is decided can be shown so."""
    if example.label in BINARY_LABELS:
        yield join_sections([*_render_knowledge(example, task), section(LABEL), PromptText(example.label)])


def _reasons(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    if example.label in BINARY_LABELS:
        yield join_sections(
            [*_render_knowledge(example, task), section(JUDGMENT, example.rationale), section(LABEL), PromptText(example.label)]
        )


def _decided(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    return _labels(example, task) if example.label in BINARY_LABELS else ()


def _render_knowledge(example: JudgedExample, task: Task) -> list[PromptText]:
    passages = example.sources() if task in (Task.RAG, Task.SUMMARY) else []
    return [*passages, format_fields(task, example.fields(task))]


def _judged_claims(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    lines = format_judged_claims(JudgedClaim(c.text.rstrip("."), c.label) for c in example.claims)
    whole = format_fields(task, example.fields(task))
    yield join_sections([*example.sources(), whole, section(CLAIMS), lines, section(LABEL), PromptText(example.label)])


def _claims(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    lines = (PromptText(f"{i}. {shield(c.text)}") for i, c in enumerate(example.claims, 1))
    yield join_sections([format_fields(task, example.fields(task)), section(CLAIMS), *lines])


def _verdicts(example: JudgedExample, task: Task) -> Iterable[PromptText]:
    claims = [c for c in example.claims if c.label is example.label]  # one of each label: as many of each are shown
    for claim in claims[:1]:
        lines = [section(CLAIM, claim.text), section(JUDGMENT, claim.reason), section(LABEL), PromptText(claim.label)]
        yield join_sections([*example.sources(), *lines])


BASELINE_PROMPTS: dict[str, tuple[tuple[str, ...], ExampleRenderer | None]] = {
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


class BaselinePromptBook:
    """Render the requests of some prompts; those of the options' folder win over the packaged ones.

    Raises PromptError, when it is made, where one of them or an example file cannot be used.
    """

    def __init__(self, options: LLMOptions, names: Sequence[str]) -> None:
        self.options = options
        self._settled = cache(self._settle)
        for name in names:
            for task in Task:
                self._settled(name, task)

    def request(self, name: str, task: Task, **values: PromptText) -> Generate:
        """Render one request."""
        return make_request(self._settled(name, task), self.options, **values)

    def judge(self, name: str, sample: Sample, passages: Iterable[Passage]) -> Generate:
        """Ask for a judgment of a sample, with the passages above it."""
        return self.request(name, sample.task, sample=join_sections([*format_passages(passages), format_sample(sample)]))

    def _settle(self, name: str, task: Task) -> Prompt:
        holes, show = BASELINE_PROMPTS[name]
        prompt = load_prompt(f"{BASELINES_FAMILY}/{name}", self.options.prompts)
        values: dict[str, PromptText] = {}
        if show and DEMONSTRATIONS in prompt.holes:
            examples = load_judged_examples(task, self.options.prompts)
            values[DEMONSTRATIONS] = PromptText("\n\n".join(shown for example in examples for shown in show(example, task)))
        settled = prompt.settled(task, **values)
        settled.render(**dict.fromkeys(holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled


@cache
def load_judged_examples(task: Task, folder: Path | None = None) -> tuple[JudgedExample, ...]:
    """Load the judged examples of a task; raises PromptError."""
    return read_examples(examples_file(task, folder, BASELINES_FAMILY), JudgedExample, task)


CLAIM_HEADING, CLAIMS_HEADING, REASONING, SUPPORTED = "Claim", "Claims", "Reasoning", "Supported"
YES, NO, NO_CLAIM_WORD = "Yes", "No", "none"
FACTORED_FAMILY = "factored"


class ClaimsExample(Record):
    """A text and the claims of each of its sentences."""

    question: str = ""
    before: str = ""
    sentences: tuple[ExampleText, ...] = Field(min_length=1)
    claims: tuple[tuple[ExampleText, ...], ...]

    @model_validator(mode="after")
    def _of_each_sentence(self) -> "ClaimsExample":
        if len(self.claims) != len(self.sentences):
            raise ValueError("give the claims of each sentence, [] where it has none")
        return self


class SupportedExample(Record):
    """A claim, its sources, and whether they support it."""

    sources: tuple[ExampleSource, ...] = Field(min_length=1)
    claim: ExampleText
    reasoning: ExampleText
    supported: bool


class FactoredPromptBook:
    """Render the requests; raises PromptError, when it is made, where a prompt or an example file cannot be used."""

    def __init__(self, options: LLMOptions, *, reasons: bool = True) -> None:
        self.options, self.reasons = options, reasons
        folder = options.prompts
        shown = [
            _format_claims_example(e) for e in read_examples(examples_file("claims", folder, FACTORED_FAMILY), ClaimsExample)
        ]
        self._claims = self._settled("claims", shown, ("text",))
        judged = [
            self._supported_shown(e) for e in read_examples(examples_file("supported", folder, FACTORED_FAMILY), SupportedExample)
        ]
        self._supported = self._settled("supported", judged, ("sources", "claim"))

    def claims(self, question: str | None, before: str, sentences: Sequence[str]) -> Generate:
        """Ask for the claims of these sentences; `before` is the text that they follow."""
        return make_request(self._claims, self.options, text=_format_text(question or "", before, sentences))

    def supported(self, question: str | None, claim: str, passages: Iterable[Passage]) -> Generate:
        """Ask whether passages support a claim: for the reasons first, or at once for the label."""
        asked = [section("Question", question)] if question else []
        shown = [*asked, section(CLAIM_HEADING, claim), section(REASONING if self.reasons else SUPPORTED)]
        return make_request(
            self._supported, self.options, sources=_format_sources(map(str, passages)), claim=join_sections(shown)
        )

    def _settled(self, name: str, shown: Sequence[PromptText], holes: Sequence[str]) -> Prompt:
        prompt = load_prompt(f"{FACTORED_FAMILY}/{name}", self.options.prompts)
        fixed = {"demonstrations": PromptText("\n\n".join(shown))} if "demonstrations" in prompt.holes else {}
        settled = prompt.settled(**fixed)
        settled.render(**dict.fromkeys(holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled

    def _supported_shown(self, example: SupportedExample) -> PromptText:
        why = [section(REASONING, example.reasoning)] if self.reasons else []
        sources = _format_sources(f"{s.title}: {s.text}" if s.title else s.text for s in example.sources)
        said = PromptText(YES if example.supported else NO)
        return join_sections([sources, section(CLAIM_HEADING, example.claim), *why, section(SUPPORTED), said])


def format_claims(claims: Iterable[tuple[int, str]]) -> str:
    """Write claims as the model is to write them, each with the number of its sentence."""
    return "\n".join(f"{number}: {claim}" for number, claim in claims)


def _format_text(question: str, before: str, sentences: Sequence[str]) -> PromptText:
    head = [section(name, text) for name, text in (("Question", question), ("Before", before)) if text]
    return join_sections([*head, *(section(f"Sentence {i}", s) for i, s in enumerate(sentences, 1)), section(CLAIMS_HEADING)])


def _format_claims_example(example: ClaimsExample) -> PromptText:
    listed = [(i, claim) for i, claims in enumerate(example.claims, 1) for claim in claims or (NO_CLAIM_WORD,)]
    return join_sections([_format_text(example.question, example.before, example.sentences), PromptText(format_claims(listed))])


def _format_sources(texts: Iterable[str]) -> PromptText:
    return join_sections(section(f"Source {i}", text) for i, text in enumerate(texts, 1))
