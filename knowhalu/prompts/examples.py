"""Worked examples as data, one file per task or prompt, from which the demonstrations of every prompt are rendered.

`FAMILY/examples/NAME.toml` holds `[[examples]]`. Those of KnowHalu hold everything once: the text to check, the extraction, the
steps with their passages and knowledge in both forms, and the judgment. A prompt uses the examples that have what it needs.
"""

import hashlib
import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from knowhalu.errors import PromptError
from knowhalu.prompts.template import prompt_folders
from knowhalu.types import NO_INFORMATION, Entity, Knowledge, KnowledgeForm, Label, Passage, Query, Record, Step, Task, Triplet

KNOWHALU_FAMILY, BASELINES_FAMILY = "knowhalu", "baselines"
TASK_FIELDS = {
    Task.QA: ("question", "answer"),
    Task.RAG: ("question", "answer"),
    Task.SUMMARY: ("summary",),
    Task.CLAIM: ("claim",),
}
"""The fields of each task, in the order in which prompts show them; the last is the response."""
R = TypeVar("R", bound=Record)
ExampleText = Annotated[str, Field(min_length=1)]
_EXAMPLES_HEADER = re.compile(r"^[ \t]*\[\[examples\]\]", re.MULTILINE)


class ExampleSource(Record):
    """A passage as an example shows it."""

    text: ExampleText
    title: str = ""


class ExampleExtraction(Record):
    """The extraction that the off-target check should make of an answer."""

    asked_for: ExampleText
    reason: ExampleText
    entity: ExampleText


class ExampleStep(Record):
    """One step of an example; without knowledge, the passages have no information."""

    thought: ExampleText
    specific: ExampleText
    general: ExampleText
    passages: tuple[ExampleSource, ...] = Field(min_length=1)
    knowledge: str = NO_INFORMATION
    triplets: tuple[tuple[ExampleText, ExampleText, ExampleText], ...] = ()

    @model_validator(mode="after")
    def _same_in_both_forms(self) -> "ExampleStep":
        if (self.knowledge == NO_INFORMATION) != (not self.triplets):
            raise ValueError("knowledge and triplets must both be given, or both be left out")
        return self

    def shown(self, form: KnowledgeForm) -> Step:
        """Return the step as a check in this form would make it."""
        facts = tuple(Triplet(subject=s, predicate=p, object=o) for s, p, o in self.triplets)
        structured = form is KnowledgeForm.STRUCTURED
        text = " ".join(map(str, facts)) if structured and facts else self.knowledge
        return Step(
            thought=self.thought,
            query=Query(specific=self.specific, general=self.general),
            passages=tuple(Passage(id=str(i), title=p.title, text=p.text) for i, p in enumerate(self.passages, 1)),
            knowledge=Knowledge(form=form, triplets=facts if structured else (), text=text),
        )


class ExampleInput(Record):
    """The text to check of a worked example: the fields of its task, and no others."""

    question: str = ""
    answer: str = ""
    summary: str = ""
    claim: str = ""

    def fields(self, task: Task) -> dict[str, str]:
        """Return the fields of a task by the names of their sections."""
        return {name: getattr(self, name) for name in TASK_FIELDS[task]}


class WorkedExample(ExampleInput):
    """A worked example of KnowHalu: the kind of case that it shows, the text before a piece, and the replies of a check."""

    shows: Literal["correct", "hallucinated", "missing", "multi-hop", "off-target"]
    before: str = ""
    extraction: ExampleExtraction | None = None
    steps: tuple[ExampleStep, ...] = ()
    finish: str = ""
    rationale: str = ""
    label: Label | None = None

    @model_validator(mode="after")
    def _whole(self) -> "WorkedExample":
        worked = (bool(self.steps), bool(self.finish), bool(self.rationale), self.label is not None)
        if any(worked) and not all(worked):
            raise ValueError("steps, finish, rationale and label belong together: give all four, or none")
        if not self.steps and self.extraction is None:
            raise ValueError("an example needs steps, or an extraction")
        return self

    def shown_steps(self, form: KnowledgeForm) -> list[Step]:
        """Return the steps as a check in this form would make them."""
        return [step.shown(form) for step in self.steps]


class ExampleClaim(Record):
    """One claim of an example, judged by the example's passages."""

    text: ExampleText
    reason: ExampleText
    label: Label


class JudgedExample(ExampleInput):
    """A text with its passages and claims, and the label that a judge should give it (baselines)."""

    passages: tuple[ExampleSource, ...] = Field(min_length=1)
    rationale: ExampleText
    label: Label
    claims: tuple[ExampleClaim, ...] = Field(min_length=1)


class ClaimsExample(Record):
    """A text and the claims of each of its sentences (Factored Verification)."""

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
    """A claim, its sources, and whether they support it (Factored Verification)."""

    sources: tuple[ExampleSource, ...] = Field(min_length=1)
    claim: ExampleText
    reasoning: ExampleText
    supported: bool


class ExampleHypothesis(Record):
    """A hypothesis with its reason and relation; with an entity where that alone is in question (CoNLI)."""

    text: ExampleText
    entity: str = ""
    type: str = ""
    reason: ExampleText
    label: Literal["ENTAILMENT", "CONTRADICTION", "NEUTRAL"]

    @model_validator(mode="after")
    def _has_its_entity(self) -> "ExampleHypothesis":
        if bool(self.entity) != bool(self.type) or self.entity not in self.text:
            raise ValueError("entity and type belong together, and the entity must stand in the text")
        return self

    @property
    def focus(self) -> Entity | None:
        """Return the entity in question."""
        start = self.text.index(self.entity)
        return Entity(start=start, end=start + len(self.entity), text=self.entity, type=self.type) if self.entity else None


class InferenceExample(Record):
    """Sources, and hypotheses about them (CoNLI)."""

    sources: tuple[ExampleSource, ...] = Field(min_length=1)
    question: str = ""
    hypotheses: tuple[ExampleHypothesis, ...] = Field(min_length=1)


class _ExamplesFile(Record, Generic[R]):
    examples: tuple[R, ...] = Field(min_length=1)


def examples_file(name: str, folder: Path | None = None, family: str = KNOWHALU_FAMILY) -> Path:
    """Return the file of the examples `name` (a task, or a prompt): in the user's folder if it has them, else in the package."""
    tried = [root / family / "examples" / f"{name}.toml" for root in prompt_folders(folder)]
    return next((file for file in tried if file.is_file()), tried[-1])


@lru_cache(maxsize=64)
def load_examples(task: Task, folder: Path | None = None) -> tuple[WorkedExample, ...]:
    """Load the examples of a task; raises PromptError naming the file, the line, and what is wrong there."""
    return read_examples(examples_file(task, folder), WorkedExample, task)


@cache
def load_judged_examples(task: Task, folder: Path | None = None) -> tuple[JudgedExample, ...]:
    """Load the judged examples of a task; raises PromptError."""
    return read_examples(examples_file(task, folder, BASELINES_FAMILY), JudgedExample, task)


def read_examples(file: Path, kind: type[R], task: Task | None = None) -> tuple[R, ...]:
    """Read a file of `[[examples]]` of one kind, which must have the fields of `task`.

    Raises PromptError naming the file, the line, and what is wrong there.
    """
    whole: Any = _ExamplesFile
    try:
        text = file.read_text(encoding="utf-8")
        examples: tuple[R, ...] = whole[kind].model_validate(tomllib.loads(text)).examples
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{file}: cannot read the examples ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{file}: not TOML ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(p + 1) if isinstance(p, int) else p for p in first["loc"] if p != "examples")
        raise PromptError(f"{file}{_example_line(text, first['loc'])}: example {place}: {first['msg']}") from error
    if task is None:
        return examples
    for number, example in enumerate(examples, 1):
        fields = {n for names in TASK_FIELDS.values() for n in names if getattr(example, n)}
        if fields != set(TASK_FIELDS[task]):
            where = _example_line(text, ("examples", number - 1))
            needs = f"needs {' and '.join(TASK_FIELDS[task])}, and has {sorted(fields)}"
            raise PromptError(f"{file}{where}: example {number} {needs}")
    return examples


def _example_line(text: str, place: tuple[int | str, ...]) -> str:
    """Return the line where the example of an error begins, as text."""
    starts = [m.start() for m in _EXAMPLES_HEADER.finditer(text)]
    number = place[1] if len(place) > 1 else None
    return f", line {text.count(chr(10), 0, starts[number]) + 1}" if isinstance(number, int) and number < len(starts) else ""


def prompt_family_hash(folder: Path | None = None, family: str = KNOWHALU_FAMILY) -> str:
    """Return one hash over all prompts and examples of a method's family, the user's in place of the packaged ones."""
    files: dict[str, Path] = {}
    for root in reversed(prompt_folders(folder)):
        files |= {f.relative_to(root).as_posix(): f for end in ("*.txt", "*.toml") for f in (root / family).rglob(end)}
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        try:
            content = file.read_bytes()
        except OSError as error:
            raise PromptError(f"{file}: cannot be read ({error.strerror})") from error
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
