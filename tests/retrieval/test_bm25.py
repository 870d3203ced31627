"""Lexical search: search terms, and BM25 scores as defined in the literature, for any split into parts."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import IndexFormatError
from knowhalu.index.part import IndexPart
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part, search_terms, search_terms_fingerprint, term_key
from tests.support.searching import corpus, lexical, overwrite_array

WORDS = ("apple", "river", "stone", "cloud", "tiger", "music")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=14)


def by_hand(texts, query, k1=0.9, b=0.4):
    """Score all passages by the formula, word by word."""
    cut = [search_terms(t) for t in texts]
    average = sum(map(len, cut)) / len(cut)
    scores = []
    for words in cut:
        score = 0.0
        for word in search_terms(query):
            n = sum(word in other for other in cut)
            f = words.count(word)
            if f:
                score += math.log(1 + (len(cut) - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * len(words) / average))
        scores.append(score)
    return scores


def test_bm25_scores_match_a_computation_by_hand(tmp_path):
    index = lexical(tmp_path, corpus(["apple apple river", "apple stone", "cloud"]), k1=1.0, b=0.5)
    # two of three passages have "apple": ln(1 + 1.5 / 2.5) = ln 1.6; lengths 3, 2, 1, their mean is 2
    first = math.log(1.6) * 2 / (2 + 1 * (0.5 + 0.5 * 3 / 2))
    second = math.log(1.6) * 1 / (1 + 1 * (0.5 + 0.5 * 2 / 2))
    assert index.rank("apple", 5) == [(0, pytest.approx(first)), (1, pytest.approx(second))]


def test_scores_match_bm25s(tmp_path):
    bm25s = pytest.importorskip("bm25s")
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(WORDS, size=draw.integers(3, 40))) + f" only{i}" for i in range(40)]
    reference = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    reference.index([search_terms(t) for t in texts], show_progress=False)
    index = lexical(tmp_path, corpus(texts))
    for query in ("apple river", "only7 cloud cloud", "music"):
        expected = reference.get_scores(search_terms(query))
        assert dict(index.rank(query, 40)) == pytest.approx({i: s for i, s in enumerate(expected.tolist()) if s > 0}, abs=1e-5)


@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), st.integers(1, 6))
def test_maxscore_ranks_like_exhaustive_scoring(tmp_path_factory, texts, query, k):
    index = lexical(tmp_path_factory.mktemp("lexical"), corpus(texts))
    scores = by_hand(texts, query)
    best = sorted((i for i in range(len(texts)) if scores[i] > 0), key=lambda i: (-round(scores[i], 9), i))[:k]
    found = index.rank(query, k)
    assert [i for i, _ in found] == best
    assert [s for _, s in found] == pytest.approx([scores[i] for i in best])


@given(TEXTS, st.data())
def test_scores_with_several_parts_and_deletions_match_a_rebuild(tmp_path_factory, texts, data):
    folder, passages = tmp_path_factory.mktemp("lexical"), corpus(texts)
    cut = data.draw(st.integers(1, len(texts)))
    gone = data.draw(st.sets(st.integers(0, len(texts) - 1), max_size=len(texts) - 1))
    for name, part in (("a", passages[:cut]), ("b", passages[cut:])):
        build_lexical_part(corpus([p.text for p in part]), folder / name, "")
    index = LexicalIndex([IndexPart(folder / "a", "lexical"), IndexPart(folder / "b", "lexical")], passages, deleted=gone)
    left = [i for i in range(len(texts)) if i not in gone]
    rebuilt = lexical(folder, corpus([texts[i] for i in left]))
    for query in ("apple river", "stone cloud tiger apple"):
        assert index.rank(query, 5) == [(left[i], score) for i, score in rebuilt.rank(query, 5)]


@given(TEXTS, st.integers(1, 7))
def test_bytes_do_not_depend_on_the_size_of_a_run(tmp_path_factory, texts, run):
    folder = tmp_path_factory.mktemp("lexical")
    whole = build_lexical_part(corpus(texts), folder / "whole", "")
    assert build_lexical_part(corpus(texts), folder / "pieces", "", run=run) == whole


def test_equal_scores_keep_the_order_of_the_rows(tmp_path):
    index = lexical(tmp_path, corpus(["river stone", "river cloud", "river tiger"]))
    assert [row for row, _ in index.rank("river", 2)] == [0, 1]


def test_titles_are_searched_too(tmp_path):
    passages = corpus(["It is tall.", "It is deep."])
    passages[1] = passages[1].model_copy(update={"title": "Lake Baikal"})
    assert [row for row, _ in lexical(tmp_path, passages).rank("baikal", 3)] == [1]


def test_unknown_words_and_empty_queries_find_nothing(tmp_path):
    index = lexical(tmp_path, corpus(["river"]))
    assert index.search(["zebra", "the of", ""], 3) == [[], [], []]


def test_a_part_that_does_not_cover_the_index_is_refused(tmp_path):
    build_lexical_part(corpus(["river"]), tmp_path / "lexical", "")
    with pytest.raises(IndexFormatError, match="covers 1 of 2 passages.*extend"):
        LexicalIndex([IndexPart(tmp_path / "lexical", "lexical")], corpus(["river", "stone"]))


def test_terms_of_another_version_are_refused(tmp_path, monkeypatch):
    build_lexical_part(corpus(["river"]), tmp_path / "lexical", "")
    monkeypatch.setattr("knowhalu.retrieval.bm25.search_terms_fingerprint", lambda: "0" * 64)
    with pytest.raises(IndexFormatError, match="another version.*extend FOLDER --lexical"):
        LexicalIndex([IndexPart(tmp_path / "lexical", "lexical")], corpus(["river"]))


@pytest.mark.parametrize(("name", "kind", "values"), [("rows", "<i4", [7, 8]), ("rows", "<i4", [-1, 0]), ("ends", "<i8", [0, 9])])
def test_crafted_arrays_are_refused(tmp_path: Path, name, kind, values):
    index = lexical(tmp_path, corpus(["river", "river"]))
    overwrite_array(tmp_path / "lexical" / f"{name}.bin", np.array(values, dtype=kind))
    with pytest.raises(IndexFormatError, match="lexical"):
        index.rank("river", 2)


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
