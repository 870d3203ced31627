"""Paraphrases keep the facts of a statement."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.quantities import find_dates, missing_date_share
from knowhalu.training.edits import (
    detokenize,
    drop_details,
    move_adverbial,
    rephrase,
    rewrite_date,
    rewrite_number,
    swap_synonym,
    use_last_name,
)

RNG = random.Random(0)


@pytest.mark.parametrize(
    ("way", "text", "new"),
    [
        (rewrite_number, "It has three towers.", "It has 3 towers."),
        (rewrite_number, "It has 3 towers.", "It has three towers."),
        (rewrite_number, "It was built on 3 May.", "It was built on 3 May."),
        (rewrite_number, "It opened at 3:30 and cost 2.5 pounds.", "It opened at 3:30 and cost 2.5 pounds."),
        (rewrite_date, "Born 9 May 1957.", "Born May 9, 1957."),
        (rewrite_date, "Born May 9, 1957.", "Born 9 May 1957."),
        (swap_synonym, "The film won.", "The movie won."),
        (swap_synonym, "It was not sold.", "It wasn't sold."),
        (use_last_name, "Helen Ward was elected.", "Ward was elected."),
        (use_last_name, "New York was taken.", "New York was taken."),
        (move_adverbial, "In 2010, she moved to Rome.", "She moved to Rome in 2010."),
        (move_adverbial, "In 2010, 2011 and 2012, it rained.", "In 2010, 2011 and 2012, it rained."),
    ],
)
def test_each_paraphrase_keeps_the_facts(way, text, new):
    assert way(text, random.Random(0)) == new


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("Councillors voted 14 to 9 on Tuesday to close the bridge.", {"14 to 9", "Tuesday"}),
        ("The tower (built in 1889) is tall.", {"(built in 1889)"}),
        ("In March 2020, the council met again.", {"March 2020"}),
        ("It was released on January 3, 1948, by a small firm.", {"January 3, 1948"}),
    ],
)
def test_drop_details_omits_details_only(text, shorter):
    found = {drop_details(text, random.Random(seed)) for seed in range(20)}
    assert any(all(d not in f for d in shorter) for f in found)
    words = [w.strip(".,").lower() for w in text.split()]
    for short in found:
        rest = iter(words)
        assert all(w.strip(".,").lower() in rest for w in short.split()), short


@given(st.integers(0, 500))
def test_a_rephrased_date_stays_the_same_date(seed):
    text = "The treaty, which was long, was signed by Helen Ward on 9 May 1957 in Rome."
    new = rephrase(text, random.Random(seed))
    assert missing_date_share(new, text) == 0
    assert set(find_dates(new)) <= set(find_dates(text))


@given(st.text(max_size=80), st.integers(0, 100))
def test_any_text_can_be_rephrased_and_the_seed_decides(text, seed):
    assert rephrase(text, random.Random(seed)) == rephrase(text, random.Random(seed))


def test_detokenize_restores_news_text():
    raw = "<t> the firm -lrb- of rome -rrb- did n't pay $ 5 . </t> <t> `` it 's late , '' he said . </t>"
    assert detokenize(raw) == "The firm (of rome) didn't pay $5. \"it's late,\" he said."
    assert detokenize("Al- Qeed( born 1998) plays.") == "Al-Qeed (born 1998) plays."


@given(st.text(alphabet="abc .,'`\"()", max_size=60))
def test_detokenize_keeps_every_letter(text):
    def letters(t):
        return re.sub(r"[^a-z]", "", t.lower())

    assert letters(detokenize(text)) == letters(text)
