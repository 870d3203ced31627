"""Triplets from sentences: worked examples, and no words lost or invented on any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.triplets import as_triplets, extract_triplets, triplets_to_text


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ada Lovelace wrote the notes.", ["(Ada Lovelace, wrote, the notes)"]),
        ("She was born in London in 1815.", ["(Ada, was born in, London)", "(Ada, was born in, 1815)"]),
        (
            "The Danube rises in Germany; it flows through Vienna.",
            ["(The Danube, rises in, Germany)", "(The Danube, flows through, Vienna)"],
        ),
        ("Founded in 1764, Brown is a university.", ["(Brown, is, a university)"]),
        ("Anna (born 1974) is an actor.", ["(Anna, is, an actor)", "(Anna, is described as, born 1974)"]),
    ],
)
def test_facts_are_read_as_triplets(sentence, expected):
    assert [str(t) for t in extract_triplets(sentence, "Ada")] == expected


def test_a_sentence_without_a_known_verb_is_kept_whole():
    (only,) = extract_triplets("Tickets: 6.80", "Ferry")
    assert (only.subject, only.predicate, only.object) == ("Ferry", "states", "Tickets: 6.80")


@given(st.text(min_size=1, max_size=200))
def test_every_text_gives_at_least_one_triplet_of_its_own_words(text):
    found = extract_triplets(text, "title")
    assert found
    invented = {"title", "is", "described", "as", "states", "it", "the", "source"}
    allowed = invented | {w.strip(" ,.!?;()\"'“”") for w in text.replace("(", " ").replace(")", " ").replace(",", " , ").split()}
    for t in found:
        for word in triplets_to_text([t]).replace("(", " ").replace(")", " ").split():
            bare = word.strip(" ,.!?;()\"'“”")
            assert not bare or any(bare in a or a in bare for a in allowed if a), (word, text)


@pytest.mark.parametrize(
    ("sentence", "written"),
    [
        ("Ada wrote it in 1843.", "Ada wrote it. Ada wrote in 1843."),
        ("Ada left Ulm in that year and moved to Bern.", "Diet: Ada left Ulm in that year and moved to Bern."),
        ("Salt: 5 | Sugar: 7", "Diet states Salt: 5 | Sugar: 7."),
    ],
)
def test_a_sentence_is_written_as_triplets_only_where_they_keep_its_words(sentence, written):
    assert as_triplets(sentence, "Diet") == written
