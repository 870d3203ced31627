"""How an inference looks inside a prompt: sources and numbered hypotheses, the same in demonstrations and in the task."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from knowhalu.demonstrations import Source, Text, examples_file, read_examples
from knowhalu.errors import PromptError
from knowhalu.prompts import Prompt, Shown, joined, load_prompt, section
from knowhalu.reasoners.layout import ENTITY, JUDGMENT, LABEL
from knowhalu.types import Entity, Label, Record

FAMILY = "conli"
SOURCE, QUESTION, HYPOTHESIS = "Source", "Question", "Hypothesis"
WORDS = {"ENTAILMENT": Label.CORRECT, "CONTRADICTION": Label.INCORRECT, "NEUTRAL": Label.INCONCLUSIVE}
"""The relations of an inference, as a model chooses them, and how they are read."""


class Asked(Record):
    """A worked hypothesis: its entity where that alone is in question, the reason and the relation."""

    text: Text
    entity: str = ""
    type: str = ""
    reason: Text
    label: Literal["ENTAILMENT", "CONTRADICTION", "NEUTRAL"]

    @model_validator(mode="after")
    def _has_its_entity(self) -> "Asked":
        if bool(self.entity) != bool(self.type) or self.entity not in self.text:
            raise ValueError("entity and type belong together, and the entity must stand in the text")
        return self

    @property
    def focus(self) -> Entity | None:
        """Return the entity in question."""
        start = self.text.index(self.entity)
        return Entity(start=start, end=start + len(self.entity), text=self.entity, type=self.type) if self.entity else None


class Worked(Record):
    """A worked example: sources, and hypotheses about them."""

    sources: tuple[Source, ...] = Field(min_length=1)
    question: str = ""
    hypotheses: tuple[Asked, ...] = Field(min_length=1)


def inference_prompt(level: Literal["sentence", "entity"], folder: Path | None = None) -> Prompt:
    """Load the prompt of a level with its demonstrations in place; raises PromptError where one of them cannot be used."""
    prompt = load_prompt(f"{FAMILY}/{level}", folder)
    shown = {"demonstrations": _demonstrations(level, folder)} if "demonstrations" in prompt.holes else {}
    settled = prompt.settled(**shown)
    settled.render(sources="x", hypotheses="x")  # a prompt with other holes is refused here, not in every check
    return settled


def _demonstrations(level: str, folder: Path | None) -> Shown:
    file = examples_file(level, folder, FAMILY)
    examples = read_examples(file, Worked)
    for number, example in enumerate(examples, 1):
        if any(bool(asked.entity) != (level == "entity") for asked in example.hypotheses):
            need = "need an entity each" if level == "entity" else "have no entity"
            raise PromptError(f"{file}: example {number}: the hypotheses of this prompt {need}")
    return Shown("\n\n".join(map(_demonstrated, examples)))


def _demonstrated(example: Worked) -> Shown:
    answers = [
        joined([section(f"{JUDGMENT} {n}", asked.reason), section(f"{LABEL} {n}"), Shown(asked.label)])
        for n, asked in enumerate(example.hypotheses, 1)
    ]
    asked = hypothesis_lines([(h.text, h.focus) for h in example.hypotheses], example.question)
    return joined([source_lines((s.title, s.text) for s in example.sources), asked, *answers])


def source_lines(sources: Iterable[tuple[str, str]]) -> Shown:
    """Show (title, text) of every source, numbered."""
    return joined(section(f"{SOURCE} {n}", f"{title}: {text}" if title else text) for n, (title, text) in enumerate(sources, 1))


def hypothesis_lines(hypotheses: Sequence[tuple[str, Entity | None]], question: str | None) -> Shown:
    """Show numbered hypotheses, an entity in question between brackets and on a line of its own."""
    lines = [section(QUESTION, question)] if question else []
    for number, (text, focus) in enumerate(hypotheses, 1):
        lines.append(section(f"{HYPOTHESIS} {number}", text if focus is None else tagged(text, focus)))
        if focus is not None:
            lines.append(section(f"{ENTITY} {number}", f"{focus.text} ({focus.type})"))
    return joined(lines)


def tagged(text: str, focus: Entity) -> str:
    """Put an entity of a text between brackets."""
    return f"{text[: focus.start]}[[{text[focus.start : focus.end]}]]{text[focus.end :]}"
