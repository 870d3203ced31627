"""How a check looks inside a prompt: sections for sample, steps and passages, the same in demonstrations and in the task.

All text is data and goes through `section`, also what a model said before: it can neither open a section nor write a label.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from knowhalu.prompts.examples import TASK_FIELDS, WorkedExample
from knowhalu.prompts.template import PromptText, join_sections, section
from knowhalu.types import KnowledgeForm, Passage, Query, Sample, Step, Task

Formulation = Literal["specific", "general", "combined"]
END_OF_QUERIES = "Done"
"""What stands in place of a query when there is nothing more to ask."""
ASKED_FOR, REASON, ENTITY = "Asked for", "Reason", "Entity"
THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL = (
    "Thought", "Specific query", "General query", "Knowledge", "Judgment", "Label",
)  # fmt: skip


def query_headings(formulation: Formulation) -> tuple[str, ...]:
    """Return the headings under which a step's query stands."""
    return {"specific": (SPECIFIC,), "general": (GENERAL,), "combined": (SPECIFIC, GENERAL)}[formulation]


def format_fields(task: Task, fields: dict[str, str]) -> PromptText:
    """Show what is checked: question and answer, a piece of a summary, or a claim."""
    return join_sections(section(name.capitalize(), fields[name]) for name in TASK_FIELDS[task])


def format_sample(sample: Sample) -> PromptText:
    """Show a sample, or a segment of one."""
    names = TASK_FIELDS[sample.task]
    return format_fields(sample.task, {names[0]: sample.question or "", names[-1]: sample.response})


def format_query(query: Query, formulation: Formulation, number: int | None = None) -> list[PromptText]:
    """Show a query in the formulations that are in use."""
    texts = {SPECIFIC: query.specific, GENERAL: query.general}
    return [
        section(name if number is None else f"{name} {number}", texts[name])
        for name in query_headings(formulation)
        if texts[name]
    ]


def format_steps_with_thoughts(steps: Sequence[Step], formulation: Formulation) -> list[PromptText]:
    """Show the steps so far as they were asked, with their thoughts."""
    lines: list[PromptText] = []
    for number, step in enumerate(steps, 1):
        lines += [section(f"{THOUGHT} {number}", step.thought), *format_query(step.query, formulation, number)]
        lines.append(section(f"{KNOWLEDGE} {number}", step.knowledge.text))
    return lines


def format_steps(steps: Sequence[Step], formulation: Formulation) -> list[PromptText]:
    """Show queries and knowledge only: the thoughts must not weigh in the judgment (KnowHalu, section 3.2 d)."""
    lines: list[PromptText] = []
    for number, step in enumerate(steps, 1):
        lines += [*format_query(step.query, formulation, number), section(f"{KNOWLEDGE} {number}", step.knowledge.text)]
    return lines


def format_passages(passages: Iterable[Passage]) -> list[PromptText]:
    """Show passages with their titles."""
    return [section(f"Passage {number}", str(passage)) for number, passage in enumerate(passages, 1)]


def demonstrate_extractions(examples: Iterable[WorkedExample]) -> PromptText:
    """Demonstrate the off-target check."""
    return _join_blocks(
        join_sections([
            format_fields(Task.QA, example.fields(Task.QA)), section(ASKED_FOR, found.asked_for), section(REASON, found.reason),
            section(ENTITY, found.entity),
        ])
        for example in examples if (found := example.extraction) is not None
    )  # fmt: skip


def demonstrate_queries(
    examples: Iterable[WorkedExample], task: Task, form: KnowledgeForm, formulation: Formulation
) -> PromptText:
    """Demonstrate whole chains of queries, up to the word that ends them."""
    return _join_blocks(
        join_sections([
            format_fields(task, example.fields(task)), *format_steps_with_thoughts(_example_steps(example, form), formulation),
            section(f"{THOUGHT} {len(example.steps) + 1}", example.finish),
            section(f"{query_headings(formulation)[0]} {len(example.steps) + 1}", END_OF_QUERIES),
        ])
        for example in examples if example.steps
    )  # fmt: skip


def demonstrate_knowledge(examples: Iterable[WorkedExample], form: KnowledgeForm, formulation: Formulation) -> PromptText:
    """Demonstrate how passages become knowledge, hop by hop."""
    return _join_blocks(
        join_sections(
            [*format_passages(step.passages), *format_query(step.query, formulation), section(KNOWLEDGE, step.knowledge.text)]
        )
        for example in examples
        for step in _example_steps(example, form)
    )


def demonstrate_judgments(
    examples: Iterable[WorkedExample], task: Task, form: KnowledgeForm, formulation: Formulation
) -> PromptText:
    """Demonstrate judgments: the reasons first, then the label on a line of its own."""
    return _join_blocks(
        join_sections([
            format_fields(task, example.fields(task)), *format_steps(_example_steps(example, form), formulation),
            section(JUDGMENT, example.rationale), section(LABEL), PromptText(example.label),
        ])
        for example in examples if example.label is not None
    )  # fmt: skip


def _example_steps(example: WorkedExample, form: KnowledgeForm) -> list[Step]:
    return [step.shown(form) for step in example.steps]


def _join_blocks(shown: Iterable[PromptText]) -> PromptText:
    return PromptText("\n\n".join(shown))
