"""Training examples: how a row becomes (premise, question, claim, target).

An example depends only on the row, the row before it and a random generator, so a run can be resumed anywhere.
"""

import random
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from knowhalu.text.sentences import content_words, sentences, windows
from knowhalu.training.data_files import TrainingRow, text_of
from knowhalu.training.edits import NEUTRAL_EDITS, detokenize, find_details, random_edit, rephrase

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
    best = ranked[:1] if whole else sorted(ranked[: rng.randint(2, 4)])
    return " ".join(p.text for p in best) or document


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
        edit = random_edit(example.claim, rng, names)
        if edit is None:
            return example
        return example._replace(claim=edit.text, target=_edited_target(edit.kind), wrong=((edit.start, edit.end),))
    wanted = set(content_words(example.claim))
    best = max(sentences(example.premise), key=lambda s: len(wanted.intersection(content_words(s.text))), default=None)
    edit = None if best is None else random_edit(best.text, rng, names)
    if best is None or edit is None or not _touches(best.text, edit.text, wanted):
        return example
    premise = example.premise[: best.start] + edit.text + example.premise[best.end :]
    return example._replace(premise=premise, target=_edited_target(edit.kind))


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
        rest = [p.text for p in sentences(view) if p not in chosen]
        return TrainingExample(" ".join(rest) or detokenize(text_of(other))[:600], "", claim, NEUTRAL)
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
    premise = cut_near_claim(detokenize(row["document"]), claim, rng)
    if supported:
        return TrainingExample(premise, "", claim, SUPPORTED)
    most_alike = max(right, key=lambda s: len(set(s.split()) & set(claim.split())), default="")
    return TrainingExample(premise, "", claim, UNSUPPORTED, changed_spans(most_alike, claim))


def changed_spans(before: str, after: str) -> tuple[CharSpan, ...] | None:
    """Return the spans of `after` that differ from `before`; None where the texts share too little to be an edit."""
    old, new = before.split(), list(re.finditer(r"\S+", after))
    matcher = SequenceMatcher(None, old, [m.group() for m in new], autojunk=False)
    if matcher.ratio() < MIN_EDIT_OVERLAP:
        return None
    changes = [(j, k) for tag, _, _, j, k in matcher.get_opcodes() if tag in ("replace", "insert")]
    return tuple((new[j].start(), new[k - 1].end()) for j, k in changes) or None


def wrong_span(item: Mapping[str, Any]) -> tuple[CharSpan, ...] | None:
    """Return the span of an item that its writer named as wrong, in any case; None where none is named.

    Whole words are preferred: "11" rather than the end of "1911".
    """
    text, wrong = item["text"], re.escape(item.get("wrong") or "")
    match = wrong and (re.search(rf"(?<!\w){wrong}(?!\w)", text, re.IGNORECASE) or re.search(wrong, text, re.IGNORECASE))
    return (match.span(),) if match else None


def quoted_premise(document: str, support: list[str], claim: str, rng: random.Random) -> str:
    """Return the sentences with the quotes, sometimes with their neighbours, or what a retriever would return."""
    if not support or rng.random() < 0.4:
        return cut_near_claim(document, claim, rng)
    pieces = sentences(document)
    keep = {i for i, p in enumerate(pieces) if any(q in p.text or p.text in q for q in support)}
    if not keep:
        return cut_near_claim(document, claim, rng)
    if rng.random() < 0.5:
        keep |= {i + d for i in keep for d in (-1, 1) if 0 <= i + d < len(pieces)}
    return " ".join(pieces[i].text for i in sorted(keep))


def written_claim(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return one claim on a written document."""
    claim = rng.choice(row["claims"])
    target = TARGETS[claim["label"]]
    premise = quoted_premise(row["document"], claim["support"], claim["text"], rng)
    if target == SUPPORTED and rng.random() < 0.1:
        return TrainingExample(cut_near_claim(other["document"], claim["text"], rng), "", claim["text"], NEUTRAL)
    if target == SUPPORTED and rng.random() < 0.2:
        return edit_example(TrainingExample(premise, "", claim["text"], target), find_details(row["document"]), rng)
    return TrainingExample(premise, "", claim["text"], target, wrong_span(claim))


def passage_claim(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return one claim written on a passage; sometimes a true one with another passage, which makes it neutral."""
    claim = rng.choice(row["claims"])
    target = TARGETS[claim["label"]]
    if target == SUPPORTED and rng.random() < 0.07:
        return TrainingExample(other["document"], "", claim["text"], NEUTRAL)
    return TrainingExample(row["document"], "", claim["text"], target, wrong_span(claim))


def passage_answer(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return one answer on a passage, a long one often without its question; sometimes a correct one with another passage."""
    answer = rng.choice(row["answers"])
    target = TARGETS[answer["label"]]
    if target == SUPPORTED and rng.random() < 0.1:
        return TrainingExample(other["document"], row["question"], answer["text"], NEUTRAL)
    example = TrainingExample(row["document"], row["question"], answer["text"], target, wrong_span(answer))
    return example if rng.random() < 0.6 else alone(example)


def written_answer(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return one answer to a written question; off-target answers are neutral."""
    answer = rng.choice([a for a in row["answers"] if a["label"] != "refusal"])
    whole = row["knowledge"]
    if len(whole) >= 1200 and rng.random() >= 0.2:
        whole = cut_near_claim(whole, answer["text"], rng)
    target = {"correct": SUPPORTED, "fabricated": CONTRADICTED, "off_target": NEUTRAL}[answer["label"]]
    if target == SUPPORTED and rng.random() < 0.12:
        return TrainingExample(cut_near_claim(other["knowledge"], answer["text"], rng), row["question"], answer["text"], NEUTRAL)
    example = TrainingExample(whole, row["question"], answer["text"], target, wrong_span(answer))
    return example if answer["label"] == "off_target" or rng.random() < 0.6 else alone(example)


def alone(example: TrainingExample) -> TrainingExample:
    """Drop the question of an answer of more than six words, which can be understood without it."""
    return example._replace(question="") if len(example.claim.split()) > 6 else example


def delivery_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return a written answer without a source: correct and wrong ones are on target, off-target ones and refusals are not."""
    evading = [a for a in row["answers"] if a["label"] in ("off_target", "refusal")]
    giving = [a for a in row["answers"] if a["label"] in ("correct", "fabricated")]
    evades = bool(evading) and rng.random() < 0.5
    answer = rng.choice(evading if evades else giving)
    return TrainingExample("", row["question"], answer["text"], NEUTRAL if evades else SUPPORTED)


def wice_claim(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Return a claim with its unsupported spans, the source cut near it."""
    source = row["source"] if len(row["source"]) < 900 else cut_near_claim(row["source"], row["claim"], rng)
    return TrainingExample(source, "", row["claim"], NEUTRAL, unsupported_token_spans(row))


def unsupported_token_spans(row: TrainingRow) -> tuple[CharSpan, ...] | None:
    """Return the spans of the tokens that a row names as not supported; None where the tokens do not match the claim."""
    spans: list[CharSpan] = []
    at = 0
    for token, wrong in zip(row["claim_tokens"], row["non_supported"], strict=True):
        start = row["claim"].find(token, at)
        if start < 0:
            return None
        at = start + len(token)
        if wrong and spans and not row["claim"][spans[-1][1] : start].strip():
            spans[-1] = (spans[-1][0], at)
        elif wrong:
            spans.append((start, at))
    return tuple(spans)
