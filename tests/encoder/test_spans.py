"""Marked words: tokens become words, neighbours become one stretch, and the right words of a claim are named."""

import json

import pytest
import torch

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.score_cache import ScoreCache
from knowhalu.encoder.spans import DEFAULT_THRESHOLD, read_span_threshold, unsupported_spans, unsupported_word_probabilities
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import weights_hash
from knowhalu.requests import Entail, EntailmentPair, TagSpans
from tests.support.tiny import VOCABULARY, write_tokenizer

CLAIM = "It was built in 1887, in Rome."
PAIR = EntailmentPair("the bridge is in rome", "the bridge was opened in rome")


def marked(values, border=DEFAULT_THRESHOLD):
    return unsupported_spans(CLAIM, values, border)


def test_neighbouring_words_are_one_stretch_with_the_highest_value():
    found = marked([0.1, 0.2, 0.9, 0.6, 0.7, 0.1, 0.8])
    assert [(CLAIM[d.start : d.end], d.probability) for d in found] == [("built in 1887", 0.9), ("Rome", 0.8)]


def test_what_is_borne_out_is_not_marked():
    assert marked([0.49] * 7) == ()


def test_a_lower_border_marks_more_and_a_word_on_it_is_as_likely_as_not():
    assert [(d.start, d.probability) for d in marked([0.2] * 7, border=0.2)] == [(0, pytest.approx(0.5))]
    (found,) = marked([0.5] * 7, border=0.2)
    assert found.probability == pytest.approx(0.8)
    assert marked([1.0, *[0.0] * 6], border=0.2)[0].probability == 1.0


def test_a_word_counts_by_its_most_doubtful_token():
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


def test_a_claims_marks_are_those_of_its_own_tokens(backend):
    with torch.no_grad():
        backend.model.marker.weight.zero_()
        backend.model.marker.bias.fill_(5.0)
    (found,) = backend.mark([PAIR])
    assert [(d.start, d.end) for d in found] == [(0, len(PAIR.claim))]
    backend.forget()
    backend.model.marker.bias.data.fill_(-5.0)
    assert backend.mark([PAIR, PAIR._replace(claim="")]) == [(), ()]


def test_weights_without_marks_mark_nothing(backend):
    backend.model.marker = None
    assert backend.mark([PAIR]) == [()]


def test_marks_and_scores_may_be_asked_for_together_and_each_gets_its_own(backend):
    for asked in (backend, ScoreCache(backend, 10)):
        replies = asked.answer_many([TagSpans((PAIR,)), Entail((PAIR, PAIR)), TagSpans((PAIR, PAIR))])
        assert [len(r) for r in replies] == [1, 2, 2]
        assert replies[1] == backend.score([PAIR, PAIR])
        assert replies[0][0] == replies[2][1] == backend.mark([PAIR])[0]


def test_a_folder_says_from_where_on_its_weights_mark_a_word(backend):
    folder = backend.folder
    assert backend.border == DEFAULT_THRESHOLD, "without a fit"
    (folder / "marks.json").write_text(json.dumps({"border": 0.01, "fitted_to": weights_hash(folder)}))
    fitted = EncoderBackend(folder)
    assert fitted.border == 0.01
    assert fitted.mark([PAIR]) == [unsupported_spans(PAIR.claim, fitted.doubts([PAIR])[0], 0.01)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"border": 0.2, "fitted_to": "of others"}', "fitted to other weights"),
        ('{"border": 0.0}', "marks nothing or all"),
        ('{"border": "much"}', "cannot read the border"),
        ("{", "cannot read the border"),
        ('["border"]', "cannot read the border"),
    ],
)
def test_a_border_that_does_not_belong_to_the_weights_or_makes_no_sense_is_refused(backend, text, says):
    (backend.folder / "marks.json").write_text(text)
    with pytest.raises(ModelError, match=says):
        read_span_threshold(backend.folder)
