"""Examples of the rows written for this project: claims on documents and passages, answers to questions, marked claims.

`of` is the hash of a whole text of the training data, `start` and `end` are the characters of the passage in it.
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
    """Return the hash by which a row names a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def join_texts(rows: Iterable[TrainingRow], files: Iterable[Path]) -> Iterator[TrainingRow]:
    """Yield rows with their texts, found in `files`: the whole one as `source`, the passage as `document`.

    Raises InputError, before the first row, where a text is in none of the files.
    """
    named = list(rows)
    wanted = {row["of"] for row in named}
    paths = list(files)
    texts = {key: text for path in paths for text in map(text_of, read_training_rows(path)) if (key := text_key(text)) in wanted}
    if lost := [row for row in named if row["of"] not in texts]:
        row, names = lost[0], ", ".join(path.name for path in paths)
        raise InputError(f"{row['id']}: its text {row['of']} is not in {names}; take the files of the data card, unchanged")
    for row in named:
        text = texts[row["of"]]
        yield {**row, "source": text, "document": text[row["start"] : row["end"]]}


def wrong_span(item: Mapping[str, Any]) -> tuple[CharSpan, ...] | None:
    """Return the stretch of an item's text that its writer named as wrong; None where none is named."""
    return _find_span(item["text"], item.get("wrong") or "")


def _find_span(text: str, wrong: str) -> tuple[CharSpan, ...] | None:
    """Find wrong words in a text, in any case, as whole words where there are such ("11" rather than in "1911")."""
    part = re.escape(wrong)
    found = wrong and (re.search(rf"(?<!\w){part}(?!\w)", text, re.IGNORECASE) or re.search(part, text, re.IGNORECASE))
    return (found.span(),) if found else None


def quoted_premise(document: str, support: list[str], claim: str, rng: random.Random) -> str:
    """Return the sentences that hold the quotes, sometimes with neighbours, or what a retriever would find."""
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
    """Take one claim of a written document."""
    claim = rng.choice(row["claims"])
    target = TARGETS[claim["label"]]
    premise = quoted_premise(row["document"], claim["support"], claim["text"], rng)
    if target == SUPPORTED and rng.random() < 0.1:
        return TrainingExample(cut_near_claim(other["document"], claim["text"], rng), "", claim["text"], NEUTRAL)
    if target == SUPPORTED and rng.random() < 0.2:
        return edit_example(TrainingExample(premise, "", claim["text"], target), find_details(row["document"]), rng)
    return TrainingExample(premise, "", claim["text"], target, wrong_span(claim))


def passage_claim(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Take one claim that was written on a real passage; sometimes a true one beside another passage, which does not tell."""
    claim = rng.choice(row["claims"])
    target = TARGETS[claim["label"]]
    if target == SUPPORTED and rng.random() < 0.07:
        return TrainingExample(other["document"], "", claim["text"], NEUTRAL)
    return TrainingExample(row["document"], "", claim["text"], target, wrong_span(claim))


def passage_answer(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Take one answer to a question on a real passage, a long one often alone; sometimes a right one beside another passage."""
    answer = rng.choice(row["answers"])
    target = TARGETS[answer["label"]]
    if target == SUPPORTED and rng.random() < 0.1:
        return TrainingExample(other["document"], row["question"], answer["text"], NEUTRAL)
    example = TrainingExample(row["document"], row["question"], answer["text"], target, wrong_span(answer))
    return example if rng.random() < 0.6 else alone(example)


def written_answer(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Take one answer to a written question; off-target answers are neutral towards the question."""
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
    """Leave out the question of an answer of more than six words, which can be read without it."""
    return example._replace(question="") if len(example.claim.split()) > 6 else example


def delivery_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Ask without any source whether a written answer delivers what is asked for: right and wrong ones do, others evade."""
    evading = [a for a in row["answers"] if a["label"] in ("off_target", "refusal")]
    giving = [a for a in row["answers"] if a["label"] in ("correct", "fabricated")]
    evades = bool(evading) and rng.random() < 0.5
    answer = rng.choice(evading if evades else giving)
    return TrainingExample("", row["question"], answer["text"], NEUTRAL if evades else SUPPORTED)


def wice_claim(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Take a claim with the stretches that its source does not bear out, the source cut near it."""
    source = row["source"] if len(row["source"]) < 900 else cut_near_claim(row["source"], row["claim"], rng)
    return TrainingExample(source, "", row["claim"], NEUTRAL, unsupported_token_spans(row))


def unsupported_token_spans(row: TrainingRow) -> tuple[CharSpan, ...] | None:
    """Return the stretches of a claim whose tokens its row names as not supported; None where they do not fit the claim."""
    found: list[CharSpan] = []
    at = 0
    for token, wrong in zip(row["claim_tokens"], row["non_supported"], strict=True):
        start = row["claim"].find(token, at)
        if start < 0:
            return None
        at = start + len(token)
        if wrong and found and not row["claim"][found[-1][1] : start].strip():
            found[-1] = (found[-1][0], at)
        elif wrong:
            found.append((start, at))
    return tuple(found)
