"""Make examples of the rows written for this project: claims on documents and passages, answers to questions.

In a row on a passage, `of` is the hash of a text of the training data, and `start` and `end` are the passage in characters.
"""

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError
from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import TrainingRow, read_training_rows, text_of
from knowhalu.training.edits import find_details
from knowhalu.training.examples import (
    CONTRADICTED,
    NEUTRAL,
    SUPPORTED,
    TARGETS,
    CharSpan,
    TrainingExample,
    cut_near_claim,
    edit_example,
)


def text_key(text: str) -> str:
    """Return the hash that identifies a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def join_texts(rows: Iterable[TrainingRow], files: Iterable[Path]) -> Iterator[TrainingRow]:
    """Yield rows with their texts from `files`: the whole text as `source`, the passage as `document`.

    Raises InputError, before the first row, where no file has a text.
    """
    named = list(rows)
    wanted = {row["of"] for row in named}
    paths = list(files)
    texts = {key: text for path in paths for text in map(text_of, read_training_rows(path)) if (key := text_key(text)) in wanted}
    if lost := [row for row in named if row["of"] not in texts]:
        row, names = lost[0], ", ".join(path.name for path in paths)
        raise InputError(f"{row['id']}: its text {row['of']} is not in {names}; use the unchanged files of the data card")
    for row in named:
        text = texts[row["of"]]
        yield {**row, "source": text, "document": text[row["start"] : row["end"]]}


def wrong_span(item: Mapping[str, Any]) -> tuple[CharSpan, ...] | None:
    """Return the span of an item that its writer named as wrong; None where none is named."""
    return _find_span(item["text"], item.get("wrong") or "")


def _find_span(text: str, wrong: str) -> tuple[CharSpan, ...] | None:
    """Find wrong words in a text, in any case, preferring whole words ("11" rather than the end of "1911")."""
    part = re.escape(wrong)
    found = wrong and (re.search(rf"(?<!\w){part}(?!\w)", text, re.IGNORECASE) or re.search(part, text, re.IGNORECASE))
    return (found.span(),) if found else None


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
