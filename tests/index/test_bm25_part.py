"""Search terms of the lexical part."""

import pytest

from knowhalu.index.bm25_part import search_terms, search_terms_fingerprint, term_key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The houses were RUNNING", ["hous", "runn"]),
        ("house", ["hous"]),
        ("co-operation in 1989", ["co", "operation", "1989"]),
        ("snake_case", ["snak", "cas"]),
        ("the of and", []),
        ("", []),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("Tokyo東京x", ["tokyo", "東京", "x"]),
        ("火", ["火"]),
    ],
)
def test_search_terms_of_texts(text, expected):
    assert search_terms(text) == expected


def test_term_keys_do_not_depend_on_the_process():
    assert term_key("hamlet") == 0xB9353601F72876ED
    assert len(search_terms_fingerprint()) == 64
