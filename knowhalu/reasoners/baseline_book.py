"""The prompts of the baselines and their demonstrations: every request of a baseline is rendered here.

`baselines/examples/TASK.toml` holds judged examples: what is checked, its passages, the rationale, the label, and its claims
with a label each. A prompt shows of them what it asks for.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field

from knowhalu.demonstrations import Checked, Source, Text, examples_file, read_examples
from knowhalu.options import LLMOptions
from knowhalu.prompts import Prompt, Shown, joined, load_prompt, section, shield
from knowhalu.reasoners.asking import asking
from knowhalu.reasoners.claim_lists import JudgedClaim, listed
from knowhalu.reasoners.layout import JUDGMENT, LABEL, checked, checked_sample, passage_lines
from knowhalu.steps import Generate
from knowhalu.types import Label, Passage, Record, Sample, Task

FAMILY, DEMONSTRATIONS = "baselines", "demonstrations"
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
        prompt = load_prompt(f"{FAMILY}/{name}", self.options.prompts)
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
    return read_examples(examples_file(task, folder, FAMILY), JudgedExample, task)
