"""The prompt book: requests to a language model, rendered from prompt files and worked examples.

A family is data: the holes of each of its prompts, the renderer of its demonstrations, and its variants.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from knowhalu.errors import PromptError
from knowhalu.llm.options import LLMOptions
from knowhalu.prompts import format as layout
from knowhalu.prompts.examples import (
    BASELINES_FAMILY,
    KNOWHALU_FAMILY,
    ClaimsExample,
    InferenceExample,
    JudgedExample,
    SupportedExample,
    examples_file,
    load_examples,
    load_judged_examples,
    read_examples,
)
from knowhalu.prompts.shielding import shield
from knowhalu.prompts.template import Prompt, PromptText, find_turns, join_sections, load_prompt, section
from knowhalu.requests import Generate
from knowhalu.types import KnowledgeForm, Label, Passage, Query, Sample, Step, Task

DEMONSTRATIONS = "demonstrations"
"""The hole for worked examples; a prompt may leave it out."""
Variant = tuple[str, ...]
"""What the words of a prompt are chosen by: nothing, a task, or a task, a form of knowledge and a formulation."""
BINARY_LABELS = (Label.CORRECT, Label.INCORRECT)


class PromptSpec(NamedTuple):
    """One prompt: the holes that a request fills, what renders its demonstrations for (folder, *variant), and its variants."""

    holes: tuple[str, ...]
    demonstrate: Callable[..., PromptText] | None = None
    variants: tuple[Variant, ...] = ((),)


class PromptFamily(NamedTuple):
    """The prompts of a method, and the folder that they and their examples lie in."""

    name: str
    prompts: Mapping[str, PromptSpec]


class PromptBook:
    """Render the requests of a family; the prompts and examples of the options' folder win over the packaged ones.

    Raises PromptError, when it is made, where a prompt has other holes than its requests fill, or a file cannot be used.
    """

    def __init__(self, family: PromptFamily, options: LLMOptions | None = None, names: Iterable[str] | None = None) -> None:
        """Load the prompts `names` of a family, all of them by default, in every variant."""
        self.options, self.family = options or LLMOptions(), family
        chosen = family.prompts if names is None else names
        self._prompts = {(name, v): self._load(name, v) for name in chosen for v in family.prompts[name].variants}

    def prompt(self, name: str, *variant: str) -> Prompt:
        """Return a prompt with its words chosen and its demonstrations in place."""
        return self._prompts[name, variant]

    def request(self, name: str, *variant: str, **values: PromptText) -> Generate:
        """Render one request; the system prompt of the options overrides that of the prompt."""
        prompt, system = self._prompts[name, variant], self.options.system
        text = prompt.render(**values)
        return Generate(
            prompt=text, system=prompt.system if system is None else system, fixed=len(prompt.fixed),
            turns=find_turns(text, prompt.reply), stop=prompt.stop, max_tokens=prompt.max_tokens, seed=self.options.seed,
        )  # fmt: skip

    def _load(self, name: str, variant: Variant) -> Prompt:
        spec, folder = self.family.prompts[name], self.options.prompts
        prompt = load_prompt(f"{self.family.name}/{name}", folder)
        values: dict[str, PromptText] = {}
        if spec.demonstrate is not None and DEMONSTRATIONS in prompt.holes:
            values[DEMONSTRATIONS] = spec.demonstrate(folder, *variant)
        settled = prompt.settled(*variant, **values)
        settled.render(**dict.fromkeys(spec.holes, "x"))  # a prompt with other holes is refused here, not in every check
        return settled


def _join_blocks(blocks: Iterable[PromptText]) -> PromptText:
    return PromptText("\n\n".join(blocks))


class KnowHaluPromptBook(PromptBook):
    """Render the requests of KnowHalu (sections 3.1 and 3.2) with queries in one formulation."""

    def __init__(self, options: LLMOptions | None = None, formulation: layout.Formulation = "combined") -> None:
        super().__init__(knowhalu_family(formulation), options)
        self.formulation = formulation

    def extract(self, question: str, answer: str) -> Generate:
        """Ask which piece of the answer the question asks for."""
        sample = layout.format_fields(Task.QA, {"question": question, "answer": answer})
        return self.request("extract", Task.QA, KnowledgeForm.UNSTRUCTURED, self.formulation, sample=sample)

    def query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Generate:
        """Ask for the next thought and query."""
        lines = [*layout.format_steps(steps, self.formulation, thoughts=True), section(f"{layout.THOUGHT} {len(steps) + 1}")]
        values = {"sample": layout.format_sample(part), "steps": join_sections(lines)}
        return self.request("query", layout.shown_task(part), form, self.formulation, **values)

    def knowledge(self, part: Sample, query: Query, passages: Sequence[Passage], form: KnowledgeForm) -> Generate:
        """Ask what the passages say about a query."""
        lines = layout.format_query(query, self.formulation)
        values = {"passages": join_sections(layout.format_passages(passages)), "query": join_sections(lines)}
        return self.request("knowledge", layout.shown_task(part), form, self.formulation, **values)

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Generate:
        """Ask what the knowledge confirms and contradicts; the label comes after that."""
        values = {"sample": layout.format_sample(part), "steps": join_sections(layout.format_steps(steps, self.formulation))}
        return self.request("judge", layout.shown_task(part), form, self.formulation, **values)


def knowhalu_family(formulation: layout.Formulation = "combined") -> PromptFamily:
    """Return the prompts of KnowHalu: for every task, form of knowledge, and one formulation of queries."""
    variants = tuple((task, form, formulation) for task in Task for form in KnowledgeForm)
    return PromptFamily(KNOWHALU_FAMILY, {
        "extract": PromptSpec(("sample",), _extractions, ((Task.QA, KnowledgeForm.UNSTRUCTURED, formulation),)),
        "query": PromptSpec(("sample", "steps"), _queries, variants),
        "knowledge": PromptSpec(("passages", "query"), _knowledge, variants),
        "judge": PromptSpec(("sample", "steps"), demonstrate_judgments, variants),
    })  # fmt: skip


def _extractions(folder: Path | None, task: Task, form: KnowledgeForm, formulation: layout.Formulation) -> PromptText:
    """Demonstrate the off-target check."""
    return _join_blocks(
        join_sections([
            layout.format_fields(Task.QA, example.fields(Task.QA)), section(layout.ASKED_FOR, extraction.asked_for),
            section(layout.REASON, extraction.reason), section(layout.ENTITY, extraction.entity),
        ])
        for example in load_examples(task, folder) if (extraction := example.extraction) is not None
    )  # fmt: skip


def _queries(folder: Path | None, task: Task, form: KnowledgeForm, formulation: layout.Formulation) -> PromptText:
    """Demonstrate whole chains of queries, up to the word that ends them."""
    return _join_blocks(
        join_sections([
            layout.format_fields(task, example.fields(task), example.before),
            *layout.format_steps(example.shown_steps(form), formulation, thoughts=True),
            section(f"{layout.THOUGHT} {len(example.steps) + 1}", example.finish),
            section(f"{layout.query_headings(formulation)[0]} {len(example.steps) + 1}", layout.END_OF_QUERIES),
        ])
        for example in load_examples(task, folder) if example.steps
    )  # fmt: skip


def _knowledge(folder: Path | None, task: Task, form: KnowledgeForm, formulation: layout.Formulation) -> PromptText:
    """Demonstrate how passages become knowledge, step by step."""
    return _join_blocks(
        join_sections([
            *layout.format_passages(step.passages), *layout.format_query(step.query, formulation),
            section(layout.KNOWLEDGE, step.knowledge.text),
        ])
        for example in load_examples(task, folder) for step in example.shown_steps(form)
    )  # fmt: skip


def demonstrate_judgments(folder: Path | None, task: Task, form: KnowledgeForm, formulation: layout.Formulation) -> PromptText:
    """Demonstrate judgments: the reasons first, then the label on a line of its own."""
    return _join_blocks(
        join_sections([
            layout.format_fields(task, example.fields(task), example.before),
            *layout.format_steps(example.shown_steps(form), formulation),
            section(layout.JUDGMENT, example.rationale), section(layout.LABEL), PromptText(example.label),
        ])
        for example in load_examples(task, folder) if example.label is not None
    )  # fmt: skip


ExampleRenderer = Callable[[JudgedExample, Task], Iterator[PromptText]]


def _judged(render: ExampleRenderer, folder: Path | None, task: Task) -> PromptText:
    return _join_blocks(block for example in load_judged_examples(task, folder) for block in render(example, task))


def _passages(example: JudgedExample) -> list[PromptText]:
    """Show the passages of an example as a check shows them."""
    return layout.format_passages(Passage(id=str(i), title=p.title, text=p.text) for i, p in enumerate(example.passages, 1))


def _labelled(example: JudgedExample, task: Task, *reasons: PromptText, passages: bool = True) -> PromptText:
    """Show a text with its passages, the reasons, and its label."""
    shown = _passages(example) if passages else []
    fields = layout.format_fields(task, example.fields(task))
    return join_sections([*shown, fields, *reasons, section(layout.LABEL), PromptText(example.label)])


def _labels(example: JudgedExample, task: Task, *, binary: bool = False) -> Iterator[PromptText]:
    """Show a text with its label; with `binary`, only what is CORRECT or INCORRECT."""
    if not binary or example.label in BINARY_LABELS:
        yield _labelled(example, task)


def _from_memory(example: JudgedExample, task: Task, *, reasons: bool = False) -> Iterator[PromptText]:
    """Show a text that is CORRECT or INCORRECT; with passages only where the text was written from them."""
    if example.label in BINARY_LABELS:
        why = [section(layout.JUDGMENT, example.rationale)] if reasons else []
        yield _labelled(example, task, *why, passages=task in (Task.RAG, Task.SUMMARY))


def _judged_claims(example: JudgedExample, task: Task) -> Iterator[PromptText]:
    claims = layout.format_judged_claims(layout.JudgedClaim(c.text.rstrip("."), c.label) for c in example.claims)
    yield _labelled(example, task, section(layout.CLAIMS), claims)


def _claims(example: JudgedExample, task: Task) -> Iterator[PromptText]:
    lines = (PromptText(f"{i}. {shield(c.text)}") for i, c in enumerate(example.claims, 1))
    yield join_sections([layout.format_fields(task, example.fields(task)), section(layout.CLAIMS), *lines])


def _verdicts(example: JudgedExample, task: Task) -> Iterator[PromptText]:
    """Show the first claim that has the example's own label, so that every label is shown equally often."""
    for claim in [c for c in example.claims if c.label is example.label][:1]:
        lines = [
            section(layout.CLAIM, claim.text),
            section(layout.JUDGMENT, claim.reason),
            section(layout.LABEL),
            PromptText(claim.label),
        ]
        yield join_sections([*_passages(example), *lines])


def _baseline(holes: tuple[str, ...], render: ExampleRenderer | None = None) -> PromptSpec:
    return PromptSpec(holes, render and partial(_judged, render), tuple((task,) for task in Task))


BASELINES = PromptFamily(BASELINES_FAMILY, {
    "halueval": _baseline(("sample",), _from_memory),
    "halueval_knowledge": _baseline(("sample",), partial(_labels, binary=True)),
    "halueval_cot": _baseline(("sample",), partial(_from_memory, reasons=True)),
    "zero_shot_cot": _baseline(("sample",)),
    "zero_shot_memory": _baseline(("sample",)),
    "few_shot": _baseline(("sample",), _labels),
    "factored_single": _baseline(("sample",), _judged_claims),
    "answer": _baseline(("sample",)),
    "supported": _baseline(("context", "sentence")),
    "claims": _baseline(("sample",), _claims),
    "verdict": _baseline(("passages", "claim"), _verdicts),
    "search_query": _baseline(("sample",)),
    "facts": _baseline(("passages", "sample")),
})  # fmt: skip


def factored_family(*, reasons: bool = True) -> PromptFamily:
    """Return the prompts of Factored Verification; without `reasons`, examples show the label at once."""
    return PromptFamily("factored", {
        "claims": PromptSpec(("text",), _split_texts),
        "supported": PromptSpec(("sources", "claim"), partial(_supported_claims, reasons)),
    })  # fmt: skip


def _split_texts(folder: Path | None) -> PromptText:
    blocks = []
    for example in read_examples(examples_file("claims", folder, "factored"), ClaimsExample):
        lines = [(i, claim) for i, claims in enumerate(example.claims, 1) for claim in claims or (layout.NO_CLAIM_WORD,)]
        text = layout.format_sentences(example.question, example.before, example.sentences)
        blocks.append(join_sections([text, PromptText(layout.format_claims(lines))]))
    return _join_blocks(blocks)


def _supported_claims(reasons: bool, folder: Path | None) -> PromptText:
    blocks = []
    for example in read_examples(examples_file("supported", folder, "factored"), SupportedExample):
        why = [section(layout.REASONING, example.reasoning)] if reasons else []
        label = PromptText(layout.YES if example.supported else layout.NO)
        sources, claim = layout.format_sources(example.sources), section(layout.CLAIM, example.claim)
        blocks.append(join_sections([sources, claim, *why, section(layout.SUPPORTED), label]))
    return _join_blocks(blocks)


def _inferences(level: str, folder: Path | None) -> PromptText:
    """Demonstrate inference about sentences or about entities; raises PromptError where an example is of the other level."""
    file = examples_file(level, folder, "conli")
    blocks = []
    for number, example in enumerate(read_examples(file, InferenceExample), 1):
        if any(bool(h.entity) != (level == "entity") for h in example.hypotheses):
            need = "need an entity each" if level == "entity" else "have no entity"
            raise PromptError(f"{file}: example {number}: the hypotheses of this prompt {need}")
        answers = [
            join_sections([section(f"{layout.JUDGMENT} {n}", h.reason), section(f"{layout.LABEL} {n}"), PromptText(h.label)])
            for n, h in enumerate(example.hypotheses, 1)
        ]
        hypotheses = layout.format_hypotheses([(h.text, h.focus) for h in example.hypotheses], example.question)
        blocks.append(join_sections([layout.format_sources(example.sources), hypotheses, *answers]))
    return _join_blocks(blocks)


CONLI = PromptFamily(
    "conli", {level: PromptSpec(("sources", "hypotheses"), partial(_inferences, level)) for level in ("sentence", "entity")}
)
REVISION = PromptFamily("revise", {
    "rewrite": PromptSpec(("sources", "doubted")),
    "response": PromptSpec(("sources", "response", "problems")),
    "critique": PromptSpec(("sources", "sentence")),
    "correction": PromptSpec(("sources", "response")),
    "revision": PromptSpec(("sources", "response", "feedback")),
    "summary": PromptSpec(("papers", "question")),
})  # fmt: skip
