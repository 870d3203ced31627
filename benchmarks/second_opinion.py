#!/usr/bin/env python
"""Tokens of a second form of knowledge asked only when needed (Algorithm 1), against both forms asked always.

Whole checks run through the method with the real prompts; the texts, queries, passages and knowledge are those of the worked
examples, and a scripted model answers. Tokens are counted as characters / 4, the usual size of English subword tokens. The
labels and confidences are drawn: the log-odds of a 7B model's confidence are spread as the quantiles in the paper's table 21
say, wrong labels are less sure than right ones, and the two forms share their hard cases. The thresholds come from a separate
draw of 100 pairs by the rule of appendix E.3.
"""

import argparse
import json
import math
import random
import statistics
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.calibration.two_forms import make_tunable_forms
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.knowhalu.llm import KnowHaluLLM
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.prompts.examples import TASK_FIELDS, WorkedExample, load_examples
from knowhalu.prompts.format import GENERAL, SPECIFIC
from knowhalu.requests import Completion, Generate, Search
from knowhalu.results import Verdict
from knowhalu.types import Document, Judgment, KnowledgeForm, Label, Sample, Task

CHARACTERS = 4
ACCURACY = {KnowledgeForm.UNSTRUCTURED: 0.79, KnowledgeForm.STRUCTURED: 0.75}
"""Of the labels that are not left open, about as in table 2 (Starling-7B, knowledge given)."""
LEFT_OPEN = {KnowledgeForm.UNSTRUCTURED: 0.05, KnowledgeForm.STRUCTURED: 0.085}
RIGHT, WRONG = (6.9, 1.7), (5.5, 1.8)
"""Mean and deviation of the log-odds of a label's confidence; together their quantiles are near those of table 21."""
TARGET = 1.35


class Draw(NamedTuple):
    """What the model will say of one text, by form."""

    true: bool
    labels: dict[KnowledgeForm, tuple[Label, float]]


class Cost(NamedTuple):
    """Tokens of a check: all that were sent and written, and those that no cached prefix had."""

    all: int = 0
    new: int = 0


def draw(rng: random.Random, true: bool) -> Draw:
    """Draw labels and confidences of both forms; a shared difficulty makes them err together."""
    hard, found = rng.gauss(0, 1), dict[KnowledgeForm, tuple[Label, float]]()
    for form in KnowledgeForm:
        if rng.random() < LEFT_OPEN[form]:
            label, spread = Label.INCONCLUSIVE, WRONG
        else:
            own = 0.75 * hard + math.sqrt(1 - 0.75**2) * rng.gauss(0, 1)
            right = own < statistics.NormalDist().inv_cdf(ACCURACY[form])
            label, spread = (Label.CORRECT if right == true else Label.INCORRECT), (RIGHT if right else WRONG)
        found[form] = (label, 1 / (1 + math.exp(-rng.gauss(*spread))))
    return Draw(true, found)


def judgment(form: KnowledgeForm, said: tuple[Label, float]) -> Judgment:
    """Return a drawn judgment for the calibration."""
    return Judgment(form=form, label=said[0], confidence=said[1], rationale="-")


class Script:
    """Answer the requests of one check as its worked example says, and count the tokens."""

    def __init__(self, example: WorkedExample, drawn: Draw) -> None:
        self.example, self.drawn = example, drawn
        self.form = KnowledgeForm.STRUCTURED
        self.seen: list[str] = []
        self.all = self.new = 0

    def answer(self, request: Generate | Search) -> Any:
        """Answer a request."""
        if isinstance(request, Search):
            step = next(s for s in self.example.steps if request.queries[0] in (s.specific, s.general))
            passages = step.shown(self.form).passages
            return [[p.model_copy(update={"id": f"{step.specific}#{p.id}"}) for p in passages] for _ in request.queries]
        text, choices = self._said(request)
        self._count(request, text)
        return Completion(text, choices=choices)

    def _said(self, request: Generate) -> tuple[str, dict[str, float]]:
        last = request.prompt.rpartition("\n")[2]
        if request.choices:
            label, p = self.drawn.labels[self.form]
            return label, {c: p if c == label else (1 - p) / 2 for c in request.choices}
        if last == "### Asked for:":
            return (
                (" " + self.example.answer, {}) if request.prefill else (" what is asked for\n### Reason: The answer has it.", {})
            )
        if last == "### Judgment:":
            return f" {self.example.rationale}", {}
        if last == "### Knowledge:":
            step = next(s for s in self.example.steps if f"### {SPECIFIC}: {s.specific}\n" in request.prompt[request.fixed :])
            return f" {step.shown(self.form).knowledge.text}", {}
        number = int(last.removeprefix("### Thought ").removesuffix(":"))
        if number == 1:  # a chain begins with the base form; the second one is the other's
            self.form = KnowledgeForm.UNSTRUCTURED if self.form is KnowledgeForm.STRUCTURED else KnowledgeForm.STRUCTURED
        if number > len(self.example.steps):
            return f" {self.example.finish}\n### {SPECIFIC} {number}: Done", {}
        step = self.example.steps[number - 1]
        return f" {step.thought}\n### {SPECIFIC} {number}: {step.specific}\n### {GENERAL} {number}: {step.general}", {}

    def _count(self, request: Generate, text: str) -> None:
        sent = request.prompt + request.prefill
        cached = max([request.fixed, *(_common(sent, s) for s in self.seen)])
        self.seen.append(sent + text)
        self.all += math.ceil((len(sent) + len(text)) / CHARACTERS)
        self.new += math.ceil((len(sent) - cached + len(text)) / CHARACTERS)


def _common(a: str, b: str) -> int:
    short = min(len(a), len(b))
    return next((i for i in range(short) if a[i] != b[i]), short) if a[:40] == b[:40] else 0


def run(conversation: Generator[Any, Any, Verdict], script: Script) -> tuple[Verdict, Cost]:
    """Drive one check to its end."""
    try:
        request = next(conversation)
        while True:
            request = conversation.send(script.answer(request))
    except StopIteration as end:
        return end.value, Cost(script.all, script.new)


def samples() -> list[tuple[Sample, WorkedExample]]:
    """Return the worked examples of all tasks as texts to be checked."""
    found = []
    for task in Task:
        for i, example in enumerate(e for e in load_examples(task) if e.steps and e.label is not Label.INCONCLUSIVE):
            fields = example.fields(task)
            documents = (
                [Document(text=p.text) for s in example.steps for p in s.passages] if task in (Task.RAG, Task.SUMMARY) else []
            )
            question = fields["question"] if task in (Task.QA, Task.RAG) else None
            sample = Sample(
                id=f"{task}-{i}", response=fields[TASK_FIELDS[task][-1]], question=question, documents=tuple(documents)
            )
            found.append((sample, example))
    return found


def round_of(seed: int, texts: list[tuple[Sample, WorkedExample]], rows: int, reasoner: KnowHaluLLM) -> dict[str, float]:
    """Calibrate on one draw, check another in three ways, and return tokens per check and the share of second opinions."""
    rng = random.Random(seed)
    calibration = [draw(rng, i % 2 == 0) for i in range(200)]
    forms = (KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED)
    judged = ((judgment(forms[0], d.labels[forms[0]]), judgment(forms[1], d.labels[forms[1]]), d.true) for d in calibration)
    limits = make_tunable_forms(judged).grid(0).best
    drawn = [draw(rng, i % 2 == 0) for i in range(rows)]
    costs: dict[str, list[Cost]] = {"never": [], "needed": [], "always": []}
    verdicts: dict[str, list[Verdict]] = {"never": [], "needed": [], "always": []}
    for way, options in (
        (w, KnowHaluOptions(second_opinion=w, segment_words=200, **limits._asdict())) for w in ("never", "needed", "always")
    ):
        method = KnowHalu(reasoner, options)
        for i, one in enumerate(drawn):
            sample, example = texts[i % len(texts)]
            verdict, cost = run(method.check(sample), Script(example, one))
            verdicts[way].append(verdict)
            costs[way].append(cost)
    if any(a.label is not b.label for a, b in zip(verdicts["needed"], verdicts["always"], strict=True)):
        raise SystemExit("a label differs: the second opinion is wrongly left out")
    total = {way: (sum(c.all for c in found), sum(c.new for c in found)) for way, found in costs.items()}
    asked = sum(v.segments[0].supplement is not None for v in verdicts["needed"]) / rows
    ratios = {
        f"{way}_{name}": total[way][i] / total["never"][i]
        for way in ("needed", "always")
        for i, name in enumerate(("all", "new"))
    }
    tokens, new = (part / rows for part in total["never"])
    return {**ratios, "asked": asked, "tokens_per_check": tokens, "new_tokens_per_check": new, **limits._asdict()}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/second_opinion.json"))
    args = parser.parse_args()
    texts, reasoner = samples(), KnowHaluLLM(LLMOptions())
    rounds = [round_of(seed, texts, args.rows, reasoner) for seed in range(args.rounds)]
    mean = {name: round(statistics.mean(r[name] for r in rounds), 4) for name in rounds[0]}
    spread = {name: [round(min(r[name] for r in rounds), 4), round(max(r[name] for r in rounds), 4)] for name in rounds[0]}
    result = {"rows": args.rows, "rounds": args.rounds, "target": TARGET, "mean": mean, "range": spread}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(
        f"needed: {mean['needed_all']:.2f} x one form (new tokens {mean['needed_new']:.2f}), always: {mean['always_all']:.2f}; "
        f"the second form was asked in {mean['asked']:.0%} of the checks; target {TARGET}"
    )


if __name__ == "__main__":
    main()
