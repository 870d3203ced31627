"""Unsupported spans: from tokens to words to spans, by the threshold of the folder."""

import json

import pytest
import torch

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.score_cache import ScoreCache
from knowhalu.encoder.verifier import (
    DEFAULT_THRESHOLD,
    PairTokenizer,
    Verifier,
    read_span_threshold,
    unsupported_spans,
    unsupported_word_probabilities,
)
from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import weights_hash
from knowhalu.requests import Entail, EntailmentPair, TagSpans
from tests.support.tiny import VOCABULARY, write_tokenizer

CLAIM = "It was built in 1887, in Rome."
PAIR = EntailmentPair("the bridge is in rome", "the bridge was opened in rome")


def marked(values, border=DEFAULT_THRESHOLD):
    return unsupported_spans(CLAIM, values, border)


def test_adjacent_words_are_one_span_with_the_highest_probability():
    found = marked([0.1, 0.2, 0.9, 0.6, 0.7, 0.1, 0.8])
    assert [(CLAIM[d.start : d.end], d.probability) for d in found] == [("built in 1887", 0.9), ("Rome", 0.8)]


def test_supported_words_are_not_tagged():
    assert marked([0.49] * 7) == ()


def test_lower_threshold_tags_more_and_maps_to_one_half():
    assert [(d.start, d.probability) for d in marked([0.2] * 7, border=0.2)] == [(0, pytest.approx(0.5))]
    (found,) = marked([0.5] * 7, border=0.2)
    assert found.probability == pytest.approx(0.8)
    assert marked([1.0, *[0.0] * 6], border=0.2)[0].probability == 1.0


def test_word_has_the_highest_probability_of_its_tokens():
    assert unsupported_word_probabilities("not unbelievable", [(0, 3), (4, 6), (6, 13), (13, 16)], [0.3, 0.1, 0.7, 0.2]) == [
        0.3,
        0.7,
    ]


@pytest.fixture
def backend(tmp_path):
    torch.manual_seed(0)
    write_tokenizer(tmp_path)
    shape = BertShape(len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    Verifier(Bert(shape)).save(tmp_path, PairTokenizer.load(tmp_path).tokenizer)
    return EncoderBackend(tmp_path, precision="fp32")


def test_spans_come_from_the_tokens_of_the_claim(backend):
    with torch.no_grad():
        backend.model.marker.weight.zero_()
        backend.model.marker.bias.fill_(5.0)
    (found,) = backend.tag_spans([PAIR])
    assert [(d.start, d.end) for d in found] == [(0, len(PAIR.claim))]
    backend.clear_cache()
    backend.model.marker.bias.data.fill_(-5.0)
    assert backend.tag_spans([PAIR, PAIR._replace(claim="")]) == [(), ()]


def test_weights_without_a_span_head_tag_nothing(backend):
    backend.model.marker = None
    assert backend.tag_spans([PAIR]) == [()]


def test_scores_and_spans_in_one_batch_keep_their_requests(backend):
    for asked in (backend, ScoreCache(backend, 10)):
        replies = asked.answer_many([TagSpans((PAIR,)), Entail((PAIR, PAIR)), TagSpans((PAIR, PAIR))])
        assert [len(r) for r in replies] == [1, 2, 2]
        assert replies[1] == backend.score([PAIR, PAIR])
        assert replies[0][0] == replies[2][1] == backend.tag_spans([PAIR])[0]


def test_span_threshold_comes_from_the_folder(backend):
    folder = backend.folder
    assert backend.span_threshold == DEFAULT_THRESHOLD, "without a fit"
    (folder / "marks.json").write_text(json.dumps({"border": 0.01, "fitted_to": weights_hash(folder)}))
    fitted = EncoderBackend(folder)
    assert fitted.span_threshold == 0.01
    assert fitted.tag_spans([PAIR]) == [unsupported_spans(PAIR.claim, fitted.unsupported_probabilities([PAIR])[0], 0.01)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"border": 0.2, "fitted_to": "of others"}', "fitted to other weights"),
        ('{"border": 0.0}', "is not between 0 and 1"),
        ('{"border": "much"}', "cannot read the threshold"),
        ("{", "cannot read the threshold"),
        ('["border"]', "cannot read the threshold"),
    ],
)
def test_threshold_of_other_weights_or_out_of_range_is_refused(backend, text, says):
    (backend.folder / "marks.json").write_text(text)
    with pytest.raises(ModelError, match=says):
        read_span_threshold(backend.folder)
