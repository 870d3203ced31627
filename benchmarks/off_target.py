#!/usr/bin/env python
"""The off-target check alone: how many answers that evade their question it finds, and how many others it flags wrongly.

Three sets: the written answers of the test split (five ways to evade, and refusals); answers made by templates that no training
has seen, on questions about held-out articles; and of the KnowHalu paper's test rows the wrong answers that name nothing, by a
stated rule (see `bare`), together with the right ones.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import interval, make_parser, ranged, read, table_line, write_results

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.engine.engine import Backends, Engine
from knowhalu.methods.knowhalu.encoder import KnowHaluEncoder
from knowhalu.requests import Conversation
from knowhalu.results import Failure, Verdict
from knowhalu.text.claims import NoClaim, find_claims
from knowhalu.text.sentences import content_words
from knowhalu.training.data_files import text_of
from knowhalu.training.edits import detokenize
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.questions import DetailQuestion, ask_detail
from knowhalu.training.recipes import RECIPES
from knowhalu.types import HallucinationKind, Label, Sample

UNSEEN = {
    "too broad": ("one of several", "a date that can be looked up", "a figure in that range", "some member of the family"),
    "parroting": ("That is what is asked: {}", "You would like to know {}", "{} - a fair question."),
    "overgeneral": (
        "Views on that have changed a good deal.", "It has a place in the history of its region.",
        "As with much else, the circumstances count.", "There is more than one side to it.",
    ),
    "negation": ("Anything but {}.", "{} can be ruled out.", "Hardly {}."),
    "misread": ("What came of it was {}.", "People still speak of {}.", "The matter goes back to {}."),
    "refusal": ("The documents are silent on that.", "Nothing I was shown settles it.", "That goes beyond what I can tell."),
}  # fmt: skip
"""Templates that were written after those of the training, and never trained on."""


class Answer(NamedTuple):
    """A question, an answer, and the way in which it evades, or "refusal"; empty where it answers."""

    question: str
    text: str
    way: str


def written(data: Path) -> Iterator[Answer]:
    """Yield the written test answers."""
    for row in read(data / "written_answers.jsonl.gz"):
        for a in row["answers"]:
            yield Answer(row["question"], a["text"], {"off_target": a["kind"], "refusal": "refusal"}.get(a["label"], ""))


def made(held: HeldOutRows, limit: int) -> Iterator[Answer]:
    """Yield answers by unseen templates to questions on held-out articles, and as many on target, right or wrong."""
    recipe = next(r for r in RECIPES if r.name == "Wikipedia, questions answered or evaded")
    rng = random.Random(0)
    questions = (q for row in held.of(recipe) if (q := ask_detail(detokenize(text_of(row)), rng)) is not None)
    for _, detail in zip(range(limit), questions, strict=False):
        way = rng.choice(list(UNSEEN))
        yield Answer(detail.question, _filled(way, detail, rng), way)
        yield Answer(detail.question, rng.choice(detail.alike) if detail.alike and rng.random() < 0.5 else detail.right, "")


def _filled(way: str, detail: DetailQuestion, rng: random.Random) -> str:
    details = detail.unlike or (detail.sentence,) if way == "misread" else detail.alike or detail.unlike or ("that",)
    other = rng.choice(details)
    text = rng.choice(UNSEEN[way]).format(detail.question.rstrip("?") if way == "parroting" else other)
    return text[:1].upper() + text[1:]


def bare(question: str, answer: str) -> bool:
    """Tell whether an answer names nothing: no digit, no capital but the first, and at most two content words of its own."""
    new_words = set(content_words(answer)) - set(content_words(question))
    return not re.search(r"\d|(?<!^)(?<![.!?] )\b[A-Z]", answer) and len(new_words) <= 2 and len(answer.split()) >= 3


def paper_rows(data: Path) -> list[dict[str, Any]]:
    """Return the paper's test rows but those of yes-or-no questions, whose answers are bare by nature."""
    rows = read(data / "knowhalu_qa_pairs.jsonl.gz")
    return [r for r in rows if r["split"] == "test" and not re.match(r"(?i)(yes|no)\b", r["right_answer"])]


def bare_rows(data: Path) -> list[str]:
    """Return the ids of the paper's rows whose wrong answer is bare."""
    return [r["id"] for r in paper_rows(data) if bare(r["question"], r["hallucinated_answer"])]


def paper(data: Path) -> Iterator[Answer]:
    """Yield the paper's bare wrong answers, and its right ones."""
    chosen = set(bare_rows(data))
    for row in paper_rows(data):
        if row["id"] in chosen:
            yield Answer(row["question"], row["hallucinated_answer"], "bare")
        yield Answer(row["question"], row["right_answer"], "")


class Check:
    """The off-target check as a method of its own."""

    name = "off-target"

    def __init__(self, reasoner: KnowHaluEncoder) -> None:
        self.reasoner = reasoner

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Decide whether the answer is on target; what only declines claims nothing, and is seen before."""
        extraction = yield from self.reasoner.extract(sample.question or "", sample.response)
        refusal = extraction.refusal or {c.no_claim for c in find_claims(sample.response)} == {NoClaim.REFUSAL}
        off = extraction.is_none and not refusal
        label = Label.INCONCLUSIVE if refusal else Label.INCORRECT if off else Label.CORRECT
        return Verdict(
            id=sample.id, task=sample.task, method=self.name, label=label, hallucinated=off,
            kind=HallucinationKind.OFF_TARGET if off else None, probability=extraction.confidence, reason=extraction.reason,
        )  # fmt: skip


def labels(folder: Path, answers: Sequence[Answer], *, by_rules: bool) -> list[Label]:
    """Label every answer by rules alone or with the verifier: INCORRECT is off-target, INCONCLUSIVE declines to answer."""
    reasoner = KnowHaluEncoder(folder)
    if by_rules:
        reasoner.model.evades = None
    samples = [Sample(id=str(i), question=a.question, response=a.text, knowledge=("-",)) for i, a in enumerate(answers)]
    outcomes = list(Engine(Check(reasoner), Backends(entail=EncoderBackend(folder))).run(samples))
    if failed := [o for o in outcomes if isinstance(o, Failure)]:
        raise SystemExit(str(failed[0]))
    return [o.label for o in outcomes if isinstance(o, Verdict)]


def measured(answers: Sequence[Answer], predicted: Sequence[Label]) -> dict[str, Any]:
    """Return the shares of evading answers that are found, by way, of answers on target that are flagged, and of refusals."""
    ways: dict[str, list[bool]] = defaultdict(list)
    for answer, label in zip(answers, predicted, strict=True):
        ways[answer.way].append(label is Label.INCORRECT)
    delivering, refusing = ways.pop(""), ways.pop("refusal", [])
    seen = [label is Label.INCONCLUSIVE for answer, label in zip(answers, predicted, strict=True) if answer.way == "refusal"]
    evading = np.array([f for flags in ways.values() for f in flags], float)
    groups = [a.question for way in ways for a in answers if a.way == way]
    low, high = interval(lambda i: float(evading[i].mean()), groups)
    return {
        "refusing": len(refusing), "refusing_seen": float(np.mean(seen)) if seen else None,
        "refusing_accused": float(np.mean(refusing)) if refusing else None,
        "evading": len(evading), "found": float(evading.mean()), "low": low, "high": high,
        "delivering": len(delivering), "accused": float(np.mean(delivering)),
        "ways": {way: [len(flags), float(np.mean(flags))] for way, flags in sorted(ways.items())},
    }  # fmt: skip


def table(sets: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the table with its explanation."""
    lines = [
        "*Found*: evading answers that are called off-target, with a 95 % bootstrap interval over questions. *Accused*: answers",
        "that deliver, right or wrong, and are called off-target all the same. *Refusals*: answers that decline, which are no",
        "hallucination; how many are seen as such, and how many are called off-target.", "",
        "| set | by | evading | found | delivering | accused | refusals | by way |", "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, by in sets.items():
        for who, r in by.items():
            ways = ", ".join(f"{way} {share:.0%} of {count}" for way, (count, share) in r["ways"].items())
            found = ranged(r["found"], r["low"], r["high"], ".1%")
            declining = "-"
            if r["refusing"]:
                declining = f"{r['refusing_seen']:.0%} of {r['refusing']} seen, {r['refusing_accused']:.0%} accused"
            counts = [found, str(r["delivering"]), f"{r['accused']:.1%}"]
            lines.append(table_line([name, who, str(r["evading"]), *counts, declining, ways]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "off_target.json", "data", "training")
    parser.add_argument("--folder", type=Path, default=PACKAGED_VERIFIER, help="verifier; default: the shipped one")
    args = parser.parse_args()
    sets = {
        "written answers": list(written(args.data)), "unseen templates": list(made(HeldOutRows(args.training, args.data), 400)),
        "KnowHalu QA, bare answers": list(paper(args.data)),
    }  # fmt: skip
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for name, answers in sets.items():
        by = {"rules": True, "rules and verifier": False}
        results[name] = {who: measured(answers, labels(args.folder, answers, by_rules=rules)) for who, rules in by.items()}
        print(name, json.dumps(results[name]), flush=True)
    write_results(args.out, {"sets": results, "bare_rows": bare_rows(args.data)}, table(results))


if __name__ == "__main__":
    main()
