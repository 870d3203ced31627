"""Rows and batches: held-out sources stay out, shapes are fixed, and a seed determines the draws."""

import json
import random
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.verifier import PairTokenizer
from knowhalu.errors import InputError
from knowhalu.training import batches as batches_module
from knowhalu.training.batches import BUCKETS, LONG, tokenize, training_batches
from knowhalu.training.data_files import is_held_out, is_in_portion, read_training_rows, text_of
from knowhalu.training.examples import TrainingExample, labelled_example, written_answer, written_claim
from knowhalu.training.recipes import ANSWERS_FILE, CLAIMS_FILE, MIX_FILE, RECIPES, Recipe, draw_rows, read_recipe_rows
from tests.training.conftest import document

TINY = (
    Recipe("labelled", MIX_FILE, ("nli_cad_snli",), labelled_example, 0.5, "none"),
    Recipe("claims", CLAIMS_FILE, (), written_claim, 0.3, "none"),
    Recipe("answers", ANSWERS_FILE, (), written_answer, 0.2, "none"),
)


@pytest.fixture
def small_pools(monkeypatch):
    monkeypatch.setattr(batches_module, "POOL_SIZE", 128)


def test_held_out_sources_are_never_drawn(data):
    out = [document(i) for i in range(60) if is_held_out(document(i))]
    assert 0 < len(out) < 30
    seen = list(islice(draw_rows(data, 0, TINY), 2000))
    assert not any(is_held_out(text_of(row)) or is_held_out(text_of(other)) for _, row, other in seen)
    kept = {document(i) for i in range(60)} - set(out)
    assert {text_of(row) for _, row, _ in seen} == kept


@given(st.text())
def test_held_out_depends_on_the_source_alone(text):
    assert is_held_out(text) is is_held_out(text)


def test_an_eighth_of_the_sources_is_held_out():
    share = sum(is_held_out(f"source {i}") for i in range(8000)) / 8000
    assert 0.115 < share < 0.135


def test_a_portion_keeps_all_held_out_sources(data):
    part = replace(TINY[0], portion=0.5)
    whole, half = ({text_of(row) for row in read_recipe_rows(r, data, held=False)} for r in (TINY[0], part))
    assert half < whole and 0.3 < len(half) / len(whole) < 0.7
    assert half == {text for text in whole if is_in_portion(text, 0.5)}
    assert list(read_recipe_rows(part, data, held=True)) == list(read_recipe_rows(TINY[0], data, held=True))


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_portion_holds_a_smaller_one(text, one, other):
    assert is_in_portion(text, max(one, other)) or not is_in_portion(text, min(one, other))
    assert is_in_portion(text, 1.0) and not is_in_portion(text, 0.0)


def test_draws_follow_the_shares(data):
    drawn = [recipe.name for recipe, _, _ in islice(draw_rows(data, 0, TINY), 4000)]
    for recipe in TINY:
        assert abs(drawn.count(recipe.name) / len(drawn) - recipe.share) < 0.04


def test_the_shares_of_the_recipes_add_up_to_one():
    assert abs(sum(r.share for r in RECIPES) - 1.0) < 0.02
    assert all(r.licence for r in RECIPES)


def test_batches_have_only_the_fixed_shapes(data, base, small_pools):
    vocabulary = PairTokenizer.load(base)
    allowed = {(size, length) for length, size in BUCKETS}
    for batch in islice(training_batches(data, vocabulary, 0, recipes=TINY), 60):
        assert tuple(batch.ids.shape) in allowed
        assert batch.ids.shape == batch.mask.shape == batch.types.shape
        assert batch.targets.shape == (batch.ids.shape[0],)
        assert (batch.mask.sum(1) > 3).all()


@pytest.mark.parametrize("skipped", [1, 7, 40])
def test_batches_resume_at_any_position(data, base, small_pools, skipped):
    vocabulary = PairTokenizer.load(base)
    whole = list(islice(training_batches(data, vocabulary, 3, recipes=TINY), 60))
    last = whole[skipped - 1]
    rest = training_batches(data, vocabulary, 3, start=(last.pool, last.number + 1), recipes=TINY)
    for expected, found in zip(whole[skipped:], rest, strict=False):
        assert (expected.pool, expected.number) == (found.pool, found.number)
        assert all((a == b).all() for a, b in zip(expected[:4], found[:4], strict=True))


def test_another_seed_draws_other_rows(data, base, small_pools):
    vocabulary = PairTokenizer.load(base)
    one, two = (next(training_batches(data, vocabulary, seed, recipes=TINY)) for seed in (1, 2))
    assert one.ids.shape != two.ids.shape or not (one.ids == two.ids).all()


def test_a_long_premise_never_shortens_the_claim(base):
    vocabulary = PairTokenizer.load(base)
    (row,) = tokenize([TrainingExample("snow " * 900, "is " * 10, "white " * 20, 0)], vocabulary)
    assert len(row.ids) == BUCKETS[-1][0]
    assert len(row.ids) - row.second_start == 10 + 1 + 20 + 1


def test_a_share_of_the_premises_is_long_and_keeps_its_own_text(base):
    vocabulary = PairTokenizer.load(base)
    examples = [TrainingExample(f"snow {i} is white", "is it" if i % 2 else "", f"claim {i}", 0) for i in range(400)]
    short, mixed = (tokenize(examples, vocabulary, share, "0:0") for share in (0.0, 0.3))
    long = [i for i, row in enumerate(mixed) if len(row.ids) > BUCKETS[-1][0]]
    assert 90 < len(long) < 150
    for i, (row, before) in enumerate(zip(mixed, short, strict=True)):
        assert row.ids[row.second_start :] == before.ids[before.second_start :]
        if i in long:
            assert 316 <= len(row.ids) <= 512
            premise = ",".join(map(str, before.ids[1 : before.second_start - 1]))
            assert f",{premise}," in f",{','.join(map(str, row.ids[1 : row.second_start - 1]))},"
        else:
            assert row == before


def test_an_empty_premise_stays_empty(base):
    examples = [TrainingExample("", "who", "snow", 0), TrainingExample("snow", "", "snow", 0)] * 20
    rows = tokenize(examples, PairTokenizer.load(base), 1.0, "0:0")
    assert all(row.second_start == 2 for row in rows[::2]) and all(len(row.ids) > 300 for row in rows[1::2])


def test_batches_of_long_premises_have_the_same_token_count(data, base, small_pools):
    shapes = {tuple(b.ids.shape) for b in islice(training_batches(data, PairTokenizer.load(base), 0, recipes=TINY, long=0.5), 60)}
    assert shapes <= {(size, length) for length, size in BUCKETS + LONG}
    assert {length for _, length in shapes} & {length for length, _ in LONG}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.name)
def test_every_recipe_makes_examples(recipe, data):
    some_set = replace(recipe, sets=("nli_cad_snli",) if recipe.file == MIX_FILE else recipe.sets)
    given_rows = list(read_recipe_rows(some_set, data, held=False))
    assert len(given_rows) > 40
    for i, (row, other) in enumerate(zip(given_rows, given_rows[1:], strict=False)):
        example = recipe.make(row, other, random.Random(i))
        assert (example.premise.strip() or example.question) and example.claim.strip()
        assert example.target in range(4)
        assert example == recipe.make(row, other, random.Random(i))


@pytest.mark.parametrize("line", ["{", "[1]", "null"])
def test_a_faulty_line_is_reported_with_its_number(line, tmp_path):
    path = tmp_path / "mix.jsonl"
    path.write_text(json.dumps({"a": 1}) + f"\n{line}\n")
    with pytest.raises(InputError, match=r"mix\.jsonl, line 2: not (JSON|an object)"):
        list(read_training_rows(path))
    with pytest.raises(InputError, match="no such file"):
        list(read_training_rows(tmp_path / "none.jsonl"))
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (tmp_path / "latin.jsonl").write_bytes(b'{"a": "caf\xe9"}')
    for name in ("cut.jsonl.gz", "latin.jsonl"):
        with pytest.raises(InputError, match=f"{name}.*(cannot be read|not UTF-8)"):
            list(read_training_rows(tmp_path / name))


def test_a_recipe_without_rows_is_an_error(data):
    nothing = Recipe("nothing", MIX_FILE, ("no_such_set",), labelled_example, 1.0, "none")
    with pytest.raises(InputError, match="no rows for 'nothing'"):
        next(draw_rows(data, 0, (nothing,)))
