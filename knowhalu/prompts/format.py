"""How a check looks inside a prompt: sections for sample, steps and passages, the same in demonstrations and in the task.

All text is data and goes through `section`, also what a model said before: it can neither open a section nor write a label.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from knowhalu.prompts.examples import FIELDS, Example
from knowhalu.prompts.template import Shown, joined, section
from knowhalu.types import Form, Passage, Query, Sample, Step, Task

Formulation = Literal["specific", "general", "combined"]
DONE = "Done"
"""What stands in place of a query when there is nothing more to ask."""
ASKED_FOR, REASON, ENTITY = "Asked for", "Reason", "Entity"
THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL = (
    "Thought", "Specific query", "General query", "Knowledge", "Judgment", "Label",
)  # fmt: skip


def asked(formulation: Formulation) -> tuple[str, ...]:
    """Return the headings under which a step's query stands."""
    return {"specific": (SPECIFIC,), "general": (GENERAL,), "combined": (SPECIFIC, GENERAL)}[formulation]


def checked(task: Task, fields: dict[str, str]) -> Shown:
    """Show what is checked: question and answer, a piece of a summary, or a claim."""
    return joined(section(name.capitalize(), fields[name]) for name in FIELDS[task])


def checked_sample(sample: Sample) -> Shown:
    """Show a sample, or a segment of one."""
    names = FIELDS[sample.task]
    return checked(sample.task, {names[0]: sample.question or "", names[-1]: sample.response})


def query_lines(query: Query, formulation: Formulation, number: int | None = None) -> list[Shown]:
    """Show a query in the formulations that are in use."""
    texts = {SPECIFIC: query.specific, GENERAL: query.general}
    return [section(name if number is None else f"{name} {number}", texts[name]) for name in asked(formulation) if texts[name]]


def asked_steps(steps: Sequence[Step], formulation: Formulation) -> list[Shown]:
    """Show the steps so far as they were asked, with their thoughts."""
    lines: list[Shown] = []
    for number, step in enumerate(steps, 1):
        lines += [section(f"{THOUGHT} {number}", step.thought), *query_lines(step.query, formulation, number)]
        lines.append(section(f"{KNOWLEDGE} {number}", step.knowledge.text))
    return lines


def found_steps(steps: Sequence[Step], formulation: Formulation) -> list[Shown]:
    """Show queries and knowledge only: the thoughts must not weigh in the judgment (KnowHalu, section 3.2 d)."""
    lines: list[Shown] = []
    for number, step in enumerate(steps, 1):
        lines += [*query_lines(step.query, formulation, number), section(f"{KNOWLEDGE} {number}", step.knowledge.text)]
    return lines


def passage_lines(passages: Iterable[Passage]) -> list[Shown]:
    """Show passages with their titles."""
    return [section(f"Passage {number}", str(passage)) for number, passage in enumerate(passages, 1)]


def shown_extractions(examples: Iterable[Example]) -> Shown:
    """Demonstrate the off-target check."""
    return _apart(
        joined([
            checked(Task.QA, example.fields(Task.QA)), section(ASKED_FOR, found.asked_for), section(REASON, found.reason),
            section(ENTITY, found.entity),
        ])
        for example in examples if (found := example.extraction) is not None
    )  # fmt: skip


def shown_queries(examples: Iterable[Example], task: Task, form: Form, formulation: Formulation) -> Shown:
    """Demonstrate whole chains of queries, up to the word that ends them."""
    return _apart(
        joined([
            checked(task, example.fields(task)), *asked_steps(_steps(example, form), formulation),
            section(f"{THOUGHT} {len(example.steps) + 1}", example.finish),
            section(f"{asked(formulation)[0]} {len(example.steps) + 1}", DONE),
        ])
        for example in examples if example.steps
    )  # fmt: skip


def shown_knowledge(examples: Iterable[Example], form: Form, formulation: Formulation) -> Shown:
    """Demonstrate how passages become knowledge, hop by hop."""
    return _apart(
        joined([*passage_lines(step.passages), *query_lines(step.query, formulation), section(KNOWLEDGE, step.knowledge.text)])
        for example in examples for step in _steps(example, form)
    )  # fmt: skip


def shown_judgments(examples: Iterable[Example], task: Task, form: Form, formulation: Formulation) -> Shown:
    """Demonstrate judgments: the reasons first, then the label on a line of its own."""
    return _apart(
        joined([
            checked(task, example.fields(task)), *found_steps(_steps(example, form), formulation),
            section(JUDGMENT, example.rationale), section(LABEL), Shown(example.label),
        ])
        for example in examples if example.label is not None
    )  # fmt: skip


def _steps(example: Example, form: Form) -> list[Step]:
    return [step.shown(form) for step in example.steps]


def _apart(shown: Iterable[Shown]) -> Shown:
    return Shown("\n\n".join(shown))
