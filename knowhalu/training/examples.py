"""Training examples: how a row becomes (premise, question, claim, target), and how an example is varied.

An example depends only on the row, the row before it and a random generator, so a run can be resumed anywhere.
"""

import random
import re
from difflib import SequenceMatcher
from typing import NamedTuple

from knowhalu.text.sentences import content_words, sentences, windows
from knowhalu.text.triplets import extract_triplets, triplets_to_text
from knowhalu.training.data_files import TrainingRow, text_of
from knowhalu.training.edits import (
    NEUTRAL_EDITS,
    FalsifyingEdit,
    detokenize,
    find_details,
    random_edit,
    rephrase,
    rewrite_date,
    rewrite_number,
    swap_synonym,
)

SUPPORTED, CONTRADICTED, NEUTRAL, UNSUPPORTED = range(4)
"""Targets; UNSUPPORTED means contradicted or neutral, where the data does not distinguish them."""
TARGETS = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    "not_in_source": NEUTRAL,
    "unsupported": UNSUPPORTED,
}
"""The target of each label of the rows."""


MIN_EDIT_OVERLAP = 0.7
"""The least share of common words at which a statement counts as an edit of another."""
CharSpan = tuple[int, int]
"""Start and end of a span, in characters."""


class TrainingExample(NamedTuple):
    """One training example; `question` is empty for a plain statement.

    `wrong` are the spans of the claim that the premise does not support, None where they are unknown; a supported claim has none.
    `soft` are the probabilities of the three classes that a verifier gave for another form of the example.
    """

    premise: str
    question: str
    claim: str
    target: int
    wrong: tuple[CharSpan, ...] | None = None
    soft: tuple[float, ...] | None = None

    @property
    def marks(self) -> tuple[CharSpan, ...] | None:
        """Return the wrong spans: none of a supported claim, None where they are unknown."""
        return () if self.target == SUPPORTED else self.wrong


def cut_near_claim(document: str, claim: str, rng: random.Random) -> str:
    """Cut a document to what a retriever would return for the claim: the best window, or the best two to four sentences."""
    wanted = set(content_words(claim))
    whole = rng.random() < 0.65
    pieces = windows(document, 150, 50) if whole else sentences(document)
    ranked = sorted(pieces, key=lambda p: -len(wanted.intersection(content_words(p.text))))
    kept = ranked[:1] if whole else sorted(ranked[: rng.randint(2, 4)])
    return " ".join(p.text for p in kept) or document


def labelled_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return a labelled (source, claim) row as an example, a long source cut near the claim."""
    source = row["source"] if len(row["source"]) < 900 else cut_near_claim(row["source"], row["claim"], rng)
    return TrainingExample(source, "", row["claim"], TARGETS[row.get("label3") or row["label"]])


def user_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return a labelled row of a user, with or without a question, as an example."""
    known = {name: row[name] for name in ("source", "claim", "label")}
    return labelled_example(known, other, rng)._replace(question=row.get("question") or "")


def mined_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return a mined example."""
    wrong = None if row["wrong"] is None else tuple((a, b) for a, b in row["wrong"])
    soft = tuple(row["soft"]) if row["soft"] else None
    return TrainingExample(row["source"], row["question"], row["claim"], row["target"], wrong, soft)


def fever_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return an encyclopedic claim, or make the neutral, edited and yes-or-no examples that such sets lack."""
    plain = labelled_example(row, other, rng)
    roll = rng.random()
    if roll < 0.2:
        wanted = set(content_words(row["claim"]))
        shared = wanted.intersection(content_words(other["source"]))
        if 2 * len(shared) < len(wanted):
            return TrainingExample(other["source"], "", row["claim"], NEUTRAL)
    if roll < 0.45 and plain.target == SUPPORTED:
        return edit_example(plain, find_details(other["source"] + " " + row["source"]), rng)
    if roll > 0.92 and plain.target in (SUPPORTED, CONTRADICTED):
        yes = rng.random() < 0.5
        question = f"Is it true that {plain.claim.rstrip('.')}?"
        return TrainingExample(plain.premise, question, "Yes" if yes else "No", plain.target if yes else 1 - plain.target)
    return plain


def edit_example(example: TrainingExample, names: list[str], rng: random.Random) -> TrainingExample:
    """Falsify a supported example by one edit, in the claim or in the premise, so that neither alone reveals the label."""
    if rng.random() < 0.5 or example.question:
        changed = random_edit(example.claim, rng, names)
        return example if changed is None else falsify_example(example, changed)
    wanted = set(content_words(example.claim))
    best = max(sentences(example.premise), key=lambda s: len(wanted.intersection(content_words(s.text))), default=None)
    changed = None if best is None else random_edit(best.text, rng, names)
    if best is None or changed is None or not _touches(best.text, changed.text, wanted):
        return example
    premise = example.premise[: best.start] + changed.text + example.premise[best.end :]
    return example._replace(premise=premise, target=_edited_target(changed.kind))


def falsify_example(example: TrainingExample, changed: FalsifyingEdit) -> TrainingExample:
    """Put an edit into a supported claim, with the changed characters as its wrong span."""
    return example._replace(claim=changed.text, target=_edited_target(changed.kind), wrong=((changed.start, changed.end),))


def _edited_target(kind: str) -> int:
    return UNSUPPORTED if kind in NEUTRAL_EDITS else CONTRADICTED


def _touches(before: str, after: str, wanted: set[str]) -> bool:
    lost = set(content_words(before)) - set(content_words(after))
    return bool(lost & wanted) or len(after) - len(before) in (4, -4)


def own_sentence_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Make a claim of a document's own sentences: paraphrased, falsified by an edit, or missing from the premise."""
    document = detokenize(text_of(row))
    views = windows(document, 140, 40)
    view = rng.choice(views[:6]).text if views else document
    pieces = [s for s in sentences(view) if 5 <= len(s.text.split()) <= 40]
    if not pieces:
        return TrainingExample(view, "", view[:120], SUPPORTED)
    first = rng.randrange(len(pieces))
    chosen, roll = [pieces[first]], rng.random()
    if roll < 0.15:
        chosen = pieces[first : first + 2]
    elif roll < 0.3:
        chosen = rng.sample(pieces, min(2, len(pieces)))
    claim = " ".join(rephrase(p.text, rng) if rng.random() < 0.8 else p.text for p in chosen)
    roll = rng.random()
    if roll < 0.25:
        kept = [p.text for p in sentences(view) if p not in chosen]
        return TrainingExample(" ".join(kept) or detokenize(text_of(other))[:600], "", claim, NEUTRAL)
    example = TrainingExample(view, "", claim, SUPPORTED)
    if roll < 0.45 and len(chosen) == 1:
        example = example._replace(premise=" ".join(p.text for p in pieces[max(0, first - 1) : first + 2]))
    return edit_example(example, find_details(document), rng) if rng.random() < 0.5 else example


def summary_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return one side of a pair of summaries, whole or only a sentence in which they differ."""
    right, wrong = (
        [detokenize(s) for s in row[k].split("</t>") if detokenize(s)] for k in ("right_summary", "hallucinated_summary")
    )
    supported = rng.random() < 0.5
    side, other_side = (right, wrong) if supported else (wrong, right)
    telling = [s for s in side if s not in other_side]
    claim = rng.choice(telling) if telling and rng.random() < 0.6 else " ".join(side)
    if supported and rng.random() < 0.3:
        claim = rephrase(claim, rng)
    marks = None if supported else changed_spans(max(right, key=lambda s: _shared_words(s, claim), default=""), claim)
    return TrainingExample(
        cut_near_claim(detokenize(row["document"]), claim, rng), "", claim, SUPPORTED if supported else UNSUPPORTED, marks
    )


def _shared_words(one: str, two: str) -> int:
    return len(set(one.split()) & set(two.split()))


def changed_spans(before: str, after: str) -> tuple[CharSpan, ...] | None:
    """Return the spans of `after` that differ from `before`; None where the texts share too little to be an edit."""
    old, new = before.split(), list(re.finditer(r"\S+", after))
    matcher = SequenceMatcher(None, old, [m.group() for m in new], autojunk=False)
    if matcher.ratio() < MIN_EDIT_OVERLAP:
        return None
    changes = [(j, k) for tag, _, _, j, k in matcher.get_opcodes() if tag in ("replace", "insert")]
    return tuple((new[j].start(), new[k - 1].end()) for j, k in changes) or None


MAX_WORD_OVERLAP = 0.5
"""Sentences of another source with this share of the claim's words may support it, and are not used as distractors."""
REWORDINGS = (swap_synonym, swap_synonym, rewrite_number, rewrite_date)
"""Paraphrases that omit nothing, because an omitted detail may have been the wrong one."""


TRIPLET_SHARE = 0.3
"""Share of the reworded texts that become triplets."""


def vary_example(example: TrainingExample, other: str, share: float, rng: random.Random) -> TrainingExample:
    """Reword the premise, reword the claim, and add sentences of another source, each with probability `share`.

    Claims with known wrong spans, claims with a question, and examples without a premise stay unchanged.
    """
    if not example.premise:
        return example
    if rng.random() < share:
        example = example._replace(premise=_reword(example.premise, rng))
    if rng.random() < share and not example.wrong and not example.question:
        example = example._replace(claim=_reword(example.claim, rng))
    return _add_distractors(example, other, rng) if rng.random() < share else example


def as_triplets(text: str) -> str | None:
    """Return a text as triplets, the form of structured knowledge; None where a word would be lost or nothing changes."""
    facts = [fact for s in sentences(text) for fact in extract_triplets(s.text)]
    rewritten = triplets_to_text(facts)
    whole = set(content_words(text)) <= set(content_words(rewritten)) and all(f.predicate != "states" for f in facts)
    return rewritten if whole and rewritten.rstrip(".") != text.rstrip(".") else None


def _reword(text: str, rng: random.Random) -> str:
    if rng.random() < TRIPLET_SHARE and (triplets := as_triplets(text)) is not None:
        return triplets
    for way in rng.sample(REWORDINGS, 2):
        text = way(text, rng)
    return text


def _add_distractors(example: TrainingExample, other: str, rng: random.Random) -> TrainingExample:
    """Add one or two sentences of another source before or after the premise."""
    pieces = [s.text for s in sentences(detokenize(other)) if len(s.text.split()) <= 40]
    start = rng.randrange(max(1, len(pieces)))
    beside = " ".join(pieces[start : start + rng.randint(1, 2)])
    wanted = set(content_words(f"{example.question} {example.claim}"))
    if not beside or len(wanted.intersection(content_words(beside))) >= MAX_WORD_OVERLAP * len(wanted):
        return example
    before = rng.random() < 0.5
    return example._replace(premise=f"{beside} {example.premise}" if before else f"{example.premise} {beside}")
