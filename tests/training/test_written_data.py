"""The sets written for this project: complete rows, exact quotes, and no label cue."""

import gzip
import hashlib
import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import mean

import pytest

from knowhalu.text.overlap import coverage
from knowhalu.training.batches import make_example
from knowhalu.training.recipes import (
    ANSWERS_FILE,
    CLAIMS_FILE,
    INFERENCE_FILE,
    INVENTED_FILE,
    OWN_DATA,
    PASSAGE_ANSWERS_FILE,
    PASSAGES_FILE,
    PLAIN_FILE,
    RECIPES,
    draw_rows,
)

FILES = [f"{kind}.{part}.jsonl.gz" for kind in ("claims", "inference", "answers") for part in ("train", "test")]
LABELS = {
    "claims": {"supported", "contradicted", "not_in_source"}, "inference": {"supported", "contradicted", "not_in_source"},
    "answers": {"correct", "fabricated", "off_target", "refusal"},
}  # fmt: skip
RIGHT, WRONG = {"supported", "correct"}, {"contradicted", "not_in_source", "fabricated"}


def read(name):
    with gzip.open(OWN_DATA / "written" / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def items(row):
    return row.get("claims") or row["answers"]


def source(row):
    return row.get("document") or row["knowledge"]


SETS = {name: read(name) for name in FILES}
ON_PASSAGES = read("passages.train.jsonl.gz") + read("plain.train.jsonl.gz")
ASKED_OF_PASSAGES = read("passage_answers.train.jsonl.gz")
"""Claims, and answers to questions, on passages of public texts, which the project does not hold."""
ON_INVENTED = read("invented.train.jsonl.gz")


def test_the_recipes_read_these_files():
    assert {OWN_DATA / CLAIMS_FILE, OWN_DATA / INFERENCE_FILE, OWN_DATA / ANSWERS_FILE} == {
        OWN_DATA / "written" / f"{kind}.train.jsonl.gz" for kind in LABELS
    }
    assert all((OWN_DATA / name).is_file() for name in (INVENTED_FILE, PASSAGES_FILE, PLAIN_FILE, PASSAGE_ANSWERS_FILE))


@pytest.mark.parametrize("name", FILES)
def test_every_written_row_has_its_fields(name):
    words, least = (10, 5) if "inference" in name else (40, 6)
    for row in SETS[name]:
        assert len(source(row).split()) >= words and len(items(row)) >= least, row["id"]
        for item in items(row):
            assert item["label"] in LABELS[name.split(".")[0]], row["id"]
            assert item["text"].strip(), row["id"]
            assert all(quote in source(row) for quote in item["support"]), row["id"]
            assert bool(item["support"]) or item["label"] not in RIGHT, row["id"]
            assert bool(item["wrong"]) == (item["label"] in WRONG) and (item["wrong"] or "") in item["text"], row["id"]


def test_ids_and_sources_are_unique_and_splits_are_disjoint():
    ids = Counter(row["id"] for rows in SETS.values() for row in rows)
    sources = Counter(source(row) for rows in SETS.values() for row in rows)
    assert not [i for i, n in ids.items() if n > 1]
    assert not [s[:60] for s, n in sources.items() if n > 1]


@pytest.mark.parametrize("name", [n for n in FILES if "train" in n])
def test_neither_length_nor_overlap_reveals_the_label(name):
    sides = {True: [], False: []}
    for row in SETS[name]:
        for item in items(row):
            if item["label"] in RIGHT | WRONG:
                sides[item["label"] in RIGHT].append((len(item["text"].split()), coverage(item["text"], source(row))))
    for measure in (0, 1):
        right, wrong = (mean(v[measure] for v in sides[side]) for side in (True, False))
        assert abs(right - wrong) <= 0.15 * right, (right, wrong)


def check_items(row, found, least):
    """Every item has a label and words, and says where it is wrong only if it is; a text that is not there is named."""
    assert row["document"].strip() if "document" in row else len(row["of"]) == 16 and row["start"] < row["end"]
    assert len({item["text"] for item in found}) == len(found) >= 2, row["id"]
    for item in found:
        assert item["label"] in LABELS["claims"] and len(item["text"].split()) >= least, row["id"]
        assert (item["wrong"] or "") in item["text"] and not (item["wrong"] and item["label"] in RIGHT), row["id"]


def test_claims_on_passages_reference_their_text_without_copying_it():
    for row in ON_PASSAGES:
        assert set(row) == {"id", "of", "start", "end", "claims"}
        check_items(row, row["claims"], least=3)
    assert len({row["id"] for row in ON_PASSAGES}) == len(ON_PASSAGES)


def test_claims_on_invented_passages_have_their_fields():
    for row in ON_INVENTED:
        assert set(row) == {"id", "genre", "document", "claims"}
        check_items(row, row["claims"], least=2)
    for name in ("id", "document"):
        assert len({row[name] for row in ON_INVENTED}) == len(ON_INVENTED)


def test_answers_on_passages_reference_their_text_without_copying_it():
    for row in ASKED_OF_PASSAGES:
        assert set(row) == {"id", "of", "start", "end", "question", "answers"} and row["question"].endswith("?")
        check_items(row, row["answers"], least=1)
    assert len({row["id"] for row in ASKED_OF_PASSAGES}) == len(ASKED_OF_PASSAGES)


@pytest.mark.parametrize("rows", [ON_PASSAGES, ON_INVENTED, ASKED_OF_PASSAGES], ids=["claims", "invented", "answers"])
def test_length_does_not_reveal_the_label_of_texts_on_passages(rows):
    for kind in {row["id"].split("-")[0] for row in rows}:
        said = [item for row in rows if row["id"].startswith(f"{kind}-") for item in items(row)]
        right, wrong = (mean(len(c["text"].split()) for c in said if (c["label"] in RIGHT) is side) for side in (True, False))
        assert abs(right - wrong) <= 0.15 * right, (kind, right, wrong)


def test_a_seed_draws_the_same_examples_as_ever():
    """A stored training run continues only if its examples stay the same, byte for byte."""
    recipes = tuple(r for r in RECIPES if not r.texts and (OWN_DATA / r.file).exists())
    drawn = islice(draw_rows(Path("none"), 0, recipes), 400)
    examples = [tuple(make_example(*draw, 0.5, random.Random(i))) for i, draw in enumerate(drawn)]
    digest = hashlib.sha256(repr(examples).encode()).hexdigest()
    assert digest == "edd9783af42ccfee08a0ab2a052778b7aa57927e095a279872e26a57e866b1e5"
