"""The verifier as a backend: order, batching, windows, long claims and its folder, on a tiny random model."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.encoder import backend as service
from knowhalu.encoder.backend import MAX_CLAIM_TOKENS, WINDOW_TOKENS, EncoderBackend
from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.verifier import PADDED_LENGTHS, PairTokenizer, Verifier, padded_length_for
from knowhalu.errors import ModelError
from knowhalu.requests import Entail, EntailmentPair
from tests.support.tiny import VOCABULARY, write_tokenizer

SHAPE = BertShape(
    vocab_size=len(VOCABULARY),
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=512
)  # fmt: skip
TEXTS = st.text(alphabet="snow is white.,0123 \n", max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("verifier")
    torch.manual_seed(0)
    write_tokenizer(place)
    model = Verifier(Bert(SHAPE))
    torch.nn.init.normal_(model.head.weight, std=0.3)
    model.save(place, PairTokenizer.load(place).tokenizer)
    return place


@pytest.fixture(scope="module")
def backend(folder):
    return EncoderBackend(folder, precision="fp32")


def test_probabilities_add_up_to_one_and_keep_the_order(backend):
    pairs = [
        EntailmentPair("snow is white", "snow"),
        EntailmentPair("the snow", "white", "is the snow white"),
        EntailmentPair("", "x"),
    ]
    together = backend.score(pairs)
    alone = [backend.score([p])[0] for p in pairs]
    for a, b in zip(together, alone, strict=True):
        assert sum(a) == pytest.approx(1, abs=1e-5) and a == pytest.approx(b, abs=1e-5)
    assert len({round(p.supported, 4) for p in together}) == 3


PAIRS = [
    EntailmentPair("snow is white. " * n, "the snow " * m)
    for n, m in ((1, 1), (40, 2), (9, 30), (41, 2), (10, 30), (1, 2), (70, 5))
]


@pytest.fixture(scope="module")
def alone(backend):
    return {p: backend.score([p])[0] for p in PAIRS}


@settings(max_examples=25)
@given(st.permutations(PAIRS + PAIRS[:3]), st.integers(1, len(PAIRS)), st.sampled_from([40, 300, 4096]))
def test_scores_do_not_depend_on_batching(folder, alone, pairs, size, budget):
    backend = EncoderBackend(folder, precision="fp32", tokens=budget)
    found = [p for a in range(0, len(pairs), size) for p in backend.score(pairs[a : a + size])]
    for pair, said in zip(pairs, found, strict=True):
        assert said == pytest.approx(alone[pair], abs=1e-3)


def test_rows_with_equal_tokens_are_computed_once(backend, monkeypatch):
    computed = counted(backend, monkeypatch)
    one, other, same = backend.score(
        [EntailmentPair("snow", "white"), EntailmentPair("snow", "the"), EntailmentPair("snow ", "white")]
    )
    assert sum(computed) == 2 and one == same != other


def counted(backend, monkeypatch):
    """Collect how many rows each call computes."""
    computed = []
    forward = backend._forward
    monkeypatch.setattr(backend, "_forward", lambda rows: computed.append(len(rows)) or forward(rows))
    return computed


def test_tagging_reuses_the_output_of_a_recent_score(backend, monkeypatch):
    computed, pair = counted(backend, monkeypatch), EntailmentPair("the snow", "white", "is the snow")
    backend.score([pair])
    marks = backend.tag_spans([pair])
    assert sum(computed) == 1
    backend.clear_cache()
    assert backend.tag_spans([pair]) == marks and sum(computed) == 2


@pytest.mark.parametrize("token", ["[SEP]", "[CLS]", "[PAD]", "[UNK]"])
def test_name_of_a_special_token_in_a_text_stays_text(backend, token):
    (ids,) = backend.vocabulary.pieces([f"snow {token} white"])
    assert not {backend.vocabulary.cls, backend.vocabulary.sep, backend.vocabulary.pad} & set(ids) and len(ids) > 3


def test_row_cache_is_bounded_and_evicts_the_oldest(backend, monkeypatch):
    monkeypatch.setattr(service, "MAX_CACHED_ROWS", 2)
    computed, pairs = counted(backend, monkeypatch), [EntailmentPair("snow", claim) for claim in ("white", "the", "is")]
    first = backend.score(pairs)
    assert len(backend._recent) == 2
    assert backend.score(pairs[1:]) == first[1:] and computed[-1] == 0
    assert backend.score(pairs[:1])[0] == pytest.approx(first[0], abs=1e-6) and computed[-1] == 1


def test_question_is_part_of_the_input(backend):
    with_question, without = backend.score([EntailmentPair("snow", "white", "is the snow"), EntailmentPair("snow", "white")])
    assert with_question != without


def test_equal_pairs_of_several_requests_are_computed_once(backend, monkeypatch):
    seen = []
    score = backend.score
    monkeypatch.setattr(backend, "score", lambda pairs: seen.append(len(pairs)) or score(pairs))
    pair, other = EntailmentPair("snow", "white"), EntailmentPair("snow", "the")
    replies = backend.answer_many([Entail((pair, other)), Entail((pair,)), Entail(())])
    assert seen == [2] and [len(r) for r in replies] == [2, 1, 0]
    assert replies[0][0] == replies[1][0]


def test_long_source_has_the_score_of_its_best_window(backend):
    sentences = [f"the snow {i} is white." for i in range(80)]
    from knowhalu.text.sentences import windows

    whole = backend.score([EntailmentPair(" ".join(sentences), "snow is white")])[0]
    parts = backend.score([EntailmentPair(w.text, "snow is white") for w in windows(" ".join(sentences), 120, 40)])
    assert len(parts) > 2 and whole == pytest.approx(max(parts, key=lambda p: p.supported), abs=1e-5)


def test_every_token_of_a_long_source_is_read(backend):
    source = "snow " + " ".join("0,1,2,3,4,5,6,7,8,9.0,1,2,3" for _ in range(100)) + " is white"
    work = backend._window_rows([EntailmentPair(source, "snow is white", "is the snow")])
    (whole,) = backend.vocabulary.pieces([source])
    read = [w.tokens.ids[1 : w.tokens.second_start - 1] for w in work]
    assert max(len(w.tokens.ids) for w in work) <= 512
    found = {tuple(part[i : i + 8]) for part in read for i in range(len(part) - 7)}
    assert all(tuple(whole[i : i + 8]) in found for i in range(len(whole) - 7))


def test_long_claim_has_the_score_of_its_least_supported_piece(backend):
    claim = " ".join(f"snow {i} is the white." for i in range(120))
    work = backend._window_rows([EntailmentPair("the snow", claim)])
    assert len({w.piece for w in work}) > 1
    ids = [i for w in work for i in w.tokens.ids[w.tokens.second_start : -1]]
    assert ids == backend.vocabulary.pieces([claim])[0]
    scores = [backend.score([EntailmentPair("the snow", s)])[0].supported for s in [claim]]
    assert scores[0] <= min(r.scores.supported for r in backend._read([w.tokens for w in work])) + 1e-6


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.none() | TEXTS), min_size=1, max_size=6), st.integers(1, 40))
def test_any_text_gets_a_score_from_all_claim_tokens(backend, rows, times):
    pairs = [EntailmentPair(p * times, c * times, q) for p, c, q in rows]
    for row in backend._window_rows(pairs):
        assert len(row.tokens.ids) <= 512
    for number, pair in enumerate(pairs):
        pieces = {w.piece: w.tokens for w in backend._window_rows(pairs) if w.pair == number}
        asked = min(96, len(backend.vocabulary.pieces([pair.question or ""])[0]))
        claim = [i for _, t in sorted(pieces.items()) for i in t.ids[t.second_start + (asked + 1 if asked else 0) : -1]]
        assert claim == backend.vocabulary.pieces([pair.claim])[0]
    assert all(0 <= p.supported <= 1 for p in backend.score(pairs))


def test_lengths_are_padded_to_fixed_shapes():
    assert [padded_length_for(n) for n in (1, 32, 33, 256, 257, 512)] == [32, 32, 48, 256, 384, 512]
    assert WINDOW_TOKENS in PADDED_LENGTHS and MAX_CLAIM_TOKENS < WINDOW_TOKENS


def test_verifier_folder_round_trips_in_half_precision(folder):
    again = Verifier.load(folder)
    assert again.head.weight.abs().max() < 20 and not again.training
    assert (folder / "model.safetensors").stat().st_size < 4 * sum(p.numel() for p in again.parameters())


def test_missing_or_damaged_verifier_is_a_model_error(tmp_path, folder):
    with pytest.raises(ModelError, match=r"no verifier in .*train_verifier"):
        EncoderBackend(tmp_path)
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        EncoderBackend(tmp_path)
