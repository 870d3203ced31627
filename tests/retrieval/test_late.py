"""Late interaction: the index ranks like exhaustive scoring."""

import numpy as np
import pytest

from knowhalu.errors import IndexFormatError, InputError
from knowhalu.index.container import HEAD_BYTES
from knowhalu.index.late_part import build_late_part, maxsim
from knowhalu.index.part import IndexPart
from knowhalu.retrieval.late import LateInteractionIndex, ProbeLimits
from tests.support.searching import WordVectors, corpus, facts, late, overwrite_array


class Clustered:
    """A stand-in for a token encoder: the vectors of passage `i` are drawn once, around common directions."""

    def __init__(self, count=600, dimension=32, spread=0.35):
        self.name, self.dimension, self.fingerprint = "clustered", dimension, "f" * 64
        draw = np.random.default_rng(5)
        centers = draw.normal(size=(120, dimension))
        self.vectors = []
        for _ in range(count):
            own = centers[draw.integers(0, 120, size=draw.integers(4, 12))]
            own = own + spread * draw.normal(size=own.shape)
            self.vectors.append((own / np.linalg.norm(own, axis=1, keepdims=True)).astype(np.float32))

    def encode(self, texts, *, query=False):
        return [self.vectors[int(t)] for t in texts]


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """An index that is much larger than what it scores exactly."""
    encoder = Clustered()
    passages = corpus([str(i) for i in range(len(encoder.vectors))])
    probing = ProbeLimits(centroids=4, candidates=64, for_each=2)
    return late(tmp_path_factory.mktemp("late"), passages, encoder, probing, bits=4), encoder


def exhaustive(encoder, query, k):
    starts = np.cumsum([0, *map(len, encoder.vectors)])[:-1]
    scores = maxsim(query, np.concatenate(encoder.vectors), starts)
    return np.argsort(-scores, kind="stable")[:k].tolist()


def queries(encoder, count=60):
    """Some tokens of some passages, shaken."""
    draw = np.random.default_rng(9)
    for row in draw.integers(0, len(encoder.vectors), size=count):
        own = encoder.vectors[row]
        own = own[draw.permutation(len(own))[:4]] + 0.08 * draw.normal(size=(min(4, len(own)), encoder.dimension))
        yield (own / np.linalg.norm(own, axis=1, keepdims=True)).astype(np.float32)


def test_recall_against_exhaustive_scoring(clustered):
    index, encoder = clustered
    found = [len({r for r, _ in index.rank(q, 10)} & set(exhaustive(encoder, q, 10))) for q in queries(encoder)]
    assert np.mean(found) / 10 >= 0.95


def test_the_best_passage_is_among_the_candidates(clustered):
    index, encoder = clustered
    best = [index.rank(q, 1)[0][0] == exhaustive(encoder, q, 1)[0] for q in queries(encoder)]
    assert np.mean(best) >= 0.95


def test_more_candidates_increase_recall(clustered):
    index, encoder = clustered
    wide = LateInteractionIndex(
        [s.part for s in index._segments],
        index.passages,
        encoder,
        probing=ProbeLimits(centroids=64, candidates=len(encoder.vectors)),
    )
    near = LateInteractionIndex([s.part for s in index._segments], index.passages, encoder, probing=ProbeLimits(1, 8, 1))

    def recall(searched):
        found = [len({r for r, _ in searched.rank(q, 8)} & set(exhaustive(encoder, q, 8))) for q in queries(encoder, 30)]
        return np.mean(found) / 8

    assert recall(near) <= recall(index) <= recall(wide) and recall(wide) >= 0.95


def test_scores_are_maxsim_up_to_quantization(clustered):
    index, encoder = clustered
    for query in queries(encoder, 5):
        for row, score in index.rank(query, 5):
            assert score == pytest.approx(float(maxsim(query, encoder.vectors[row], np.array([0]))[0]), abs=0.02 * len(query))


def test_scores_match_a_computation_by_hand(tmp_path):
    index = late(tmp_path, corpus(["river stone", "river cloud", "tiger"]))
    (found,) = index.search(["river stone"], 3)
    assert found[0].text == "river stone" and found[0].score == pytest.approx(2.0, abs=0.02)
    river, stone, cloud = (WordVectors()._direction(w) for w in ("river", "ston", "cloud"))
    expected = 1.0 + max(stone @ river, stone @ cloud)
    assert {p.text: p.score for p in found}["river cloud"] == pytest.approx(expected, abs=0.02)


def test_equal_passages_keep_the_order_of_the_rows(tmp_path):
    index = late(tmp_path, corpus(["river stone", "cloud", "river stone"]))
    assert [p.document for p in index.search(["river"], 3)[0]][:2] == ["d0", "d2"]


def test_several_parts_are_searched_as_one_without_deleted_rows(tmp_path):
    passages, encoder = facts(), WordVectors()
    for name, part in (("a", passages[:5]), ("b", passages[5:])):
        build_late_part(type(passages)(part), tmp_path / name, "", encoder, bits=8)
    parts = [IndexPart(tmp_path / name, "late") for name in "ab"]
    whole = LateInteractionIndex(parts, passages, encoder)
    (best,) = whole.search(["iceberg Titanic"], 1)
    assert best[0].title == "Titanic"
    less = LateInteractionIndex(parts, passages, encoder, deleted=[11])
    assert [p.title for p in less.search(["iceberg Titanic"], 12)[0]] == [
        p.title for p in whole.search(["iceberg Titanic"], 12)[0] if p.title != "Titanic"
    ]


def test_each_passage_is_encoded_once_and_bytes_do_not_depend_on_the_run(tmp_path):
    class Counting(WordVectors):
        seen = 0

        def encode(self, texts, *, query=False):
            self.seen += len(texts)
            return super().encode(texts, query=query)

    encoder = Counting()
    whole = build_late_part(facts(), tmp_path / "whole", "", encoder)
    assert encoder.seen == len(facts())
    assert build_late_part(facts(), tmp_path / "pieces", "", encoder, run=3) == whole


def test_another_encoder_is_refused(tmp_path):
    build_late_part(facts(), tmp_path / "late", "", WordVectors(16))
    with pytest.raises(IndexFormatError, match="encoder 'words 16', not with 'words 24'"):
        LateInteractionIndex([IndexPart(tmp_path / "late", "late")], facts(), WordVectors(24))


def test_an_empty_late_index_is_refused(tmp_path):
    with pytest.raises(InputError, match="no passage"):
        build_late_part(corpus([]), tmp_path / "late", "", WordVectors())


@pytest.mark.parametrize(
    ("name", "kind", "change"),
    [
        ("codes", "<i4", lambda a: a * 0 + 10_000),
        ("codes", "<i4", lambda a: a * 0 - 1),
        ("tokens", "<i8", lambda a: a + 10_000),
        ("tokens", "<i8", lambda a: a[::-1]),
        ("rows", "<i4", lambda a: a + 10_000),
        ("rows", "<i4", lambda a: a - 10_000),
    ],
)
def test_crafted_arrays_are_refused(tmp_path, name, kind, change):
    passages = corpus([f"river stone{i} cloud{i}" for i in range(40)])
    index = late(tmp_path, passages, probing=ProbeLimits(2, 4, 1))
    path = tmp_path / "late" / f"{name}.bin"
    overwrite_array(path, change(np.fromfile(path, dtype=kind, offset=HEAD_BYTES)).astype(kind))
    with pytest.raises(IndexFormatError, match="extend FOLDER --late"):
        for text in ("river stone1", "cloud3"):
            index.search([text], 3)
