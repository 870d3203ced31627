"""The sections of a prompt for samples, steps, passages and claims, the same in demonstrations and in the task.

All text is data and goes through `section`, earlier replies too: it can neither open a section nor write a label.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from knowhalu.prompts.examples import TASK_FIELDS, ExampleSource
from knowhalu.prompts.shielding import shield
from knowhalu.prompts.template import PromptText, join_sections, section
from knowhalu.types import (
    META_ASKED,
    META_BEFORE,
    META_HISTORY,
    META_SINGLE_CLAIM,
    Entity,
    Label,
    Passage,
    Query,
    Sample,
    Step,
    Task,
)

Formulation = Literal["specific", "general", "combined"]
END_OF_QUERIES = "Done"
"""The word in place of a query that ends the chain."""
ASKED_FOR, REASON, ENTITY = "Asked for", "Reason", "Entity"
THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL = (
    "Thought", "Specific query", "General query", "Knowledge", "Judgment", "Label",
)  # fmt: skip
CLAIM, CLAIMS, QUESTION, SOURCE, HYPOTHESIS, REASONING, SUPPORTED = (
    "Claim", "Claims", "Question", "Source", "Hypothesis", "Reasoning", "Supported",
)  # fmt: skip
CONVERSATION, BEFORE = "Conversation", "Text before"
DIALOGUE_KEYS = (META_HISTORY, "dialogue_history")
"""Keys of `meta` under which data sets keep a dialogue."""
YES, NO, NO_CLAIM_WORD = "Yes", "No", "none"


def query_headings(formulation: Formulation) -> tuple[str, ...]:
    """Return the headings of a step's query."""
    return {"specific": (SPECIFIC,), "general": (GENERAL,), "combined": (SPECIFIC, GENERAL)}[formulation]


def format_fields(task: Task, fields: dict[str, str], before: str = "") -> PromptText:
    """Show the fields of a task: question and answer, a segment of a summary, or a claim; the text `before` it comes first."""
    head = [section(BEFORE, before)] if before else []
    return join_sections([*head, *(section(name.capitalize(), fields[name]) for name in TASK_FIELDS[task])])


def shown_task(part: Sample) -> Task:
    """Return the task that a prompt speaks of: a single claim with documents is a claim, and no piece of a summary."""
    return Task.CLAIM if part.task is Task.SUMMARY and part.meta.get(META_SINGLE_CLAIM) else part.task


def format_sample(sample: Sample) -> PromptText:
    """Show a sample, or a piece of one, after what it can only be understood by.

    That grows at its end from piece to piece of a response, so a model has most of it in its cache.
    """
    asked = sample.question or str(sample.meta.get(META_ASKED) or "")
    shown = {CONVERSATION: format_dialogue(sample), QUESTION: asked, BEFORE: str(sample.meta.get(META_BEFORE) or "")}
    response = section(TASK_FIELDS[shown_task(sample)][-1].capitalize(), sample.response)
    return join_sections([*(section(name, text) for name, text in shown.items() if text), response])


def format_dialogue(sample: Sample) -> str:
    """Return the turns before a response, one on each line; an object with a role and its content is such a turn, too."""
    turns = next((found for key in DIALOGUE_KEYS if (found := sample.meta.get(key))), ())
    if isinstance(turns, str):
        return turns.strip()
    if not isinstance(turns, list | tuple):
        return ""
    fields = [(str(t.get("role", "")), str(t.get("content", ""))) if isinstance(t, dict) else ("", str(t)) for t in turns]
    return "\n".join(f"{role}: {content}" if role else content for role, content in fields if content)


def format_query(query: Query, formulation: Formulation, number: int | None = None) -> list[PromptText]:
    """Show a query in the chosen formulations."""
    texts = {SPECIFIC: query.specific, GENERAL: query.general}
    return [
        section(name if number is None else f"{name} {number}", texts[name])
        for name in query_headings(formulation)
        if texts[name]
    ]


def format_steps(steps: Sequence[Step], formulation: Formulation, *, thoughts: bool = False) -> list[PromptText]:
    """Show queries and knowledge; thoughts must not influence the judgment (KnowHalu, section 3.2 d)."""
    lines: list[PromptText] = []
    for number, step in enumerate(steps, 1):
        lines += [section(f"{THOUGHT} {number}", step.thought)] if thoughts else []
        lines += [*format_query(step.query, formulation, number), section(f"{KNOWLEDGE} {number}", step.knowledge.text)]
    return lines


def format_passages(passages: Iterable[Passage]) -> list[PromptText]:
    """Show passages with their titles."""
    return [section(f"Passage {number}", str(passage)) for number, passage in enumerate(passages, 1)]


class JudgedClaim(NamedTuple):
    """A claim and the label that a model gave it."""

    text: str
    label: Label


def format_judged_claims(claims: Iterable[JudgedClaim]) -> PromptText:
    """Write judged claims as a numbered list."""
    return join_sections(PromptText(f"{i}. {shield(c.text)}: {c.label}") for i, c in enumerate(claims, 1))


def format_claims(claims: Iterable[tuple[int, str]]) -> str:
    """Write `(number of the sentence, claim)` pairs as the model is to write them, one on a line."""
    return "\n".join(f"{number}: {claim}" for number, claim in claims)


def format_sentences(question: str, before: str, sentences: Sequence[str]) -> PromptText:
    """Show the sentences of a text that are to be split into claims, numbered, after the text `before` them."""
    head = [section(name, text) for name, text in ((QUESTION, question), ("Before", before)) if text]
    return join_sections([*head, *(section(f"Sentence {i}", s) for i, s in enumerate(sentences, 1)), section(CLAIMS)])


def format_sources(sources: Iterable[Passage | ExampleSource]) -> PromptText:
    """Show title and text of every source, numbered."""
    return join_sections(
        section(f"{SOURCE} {n}", f"{s.title}: {s.text}" if s.title else s.text) for n, s in enumerate(sources, 1)
    )


def format_hypotheses(hypotheses: Sequence[tuple[str, Entity | None]], question: str | None) -> PromptText:
    """Show numbered hypotheses; an entity in question stands between brackets and on a line of its own."""
    lines = [section(QUESTION, question)] if question else []
    for number, (text, focus) in enumerate(hypotheses, 1):
        if focus is not None:
            text = f"{text[: focus.start]}[[{text[focus.start : focus.end]}]]{text[focus.end :]}"
        lines.append(section(f"{HYPOTHESIS} {number}", text))
        if focus is not None:
            lines.append(section(f"{ENTITY} {number}", f"{focus.text} ({focus.type})"))
    return join_sections(lines)
