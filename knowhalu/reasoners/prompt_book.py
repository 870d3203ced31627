"""The prompt book: every request that a check by an LLM makes, rendered from the prompt files and their demonstrations."""

from collections.abc import Sequence
from functools import cache

from knowhalu.demonstrations import load_examples
from knowhalu.options import LLMOptions
from knowhalu.prompts import Prompt, Shown, joined, load_prompt, section
from knowhalu.reasoners import layout
from knowhalu.reasoners.asking import asking
from knowhalu.reasoners.layout import Formulation
from knowhalu.steps import Generate
from knowhalu.types import Form, Passage, Query, Sample, Step, Task

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
