"""Marked words: tokens become words, neighbours become one stretch, and the right words of a claim are named."""

import pytest
import torch

from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.marking import doubtful, word_doubts
from knowhalu.encoder.memory import Recollection
from knowhalu.encoder.service import EncoderBackend
from knowhalu.encoder.verifier import Verifier, Vocabulary
from knowhalu.steps import Entail, Hypothesis, Mark
from tests.tiny import VOCABULARY, write_tokenizer

CLAIM = "It was built in 1887, in Rome."
PAIR = Hypothesis("the bridge is in rome", "the bridge was opened in rome")


def marked(values):
    return doubtful(CLAIM, values)


def test_neighbouring_words_are_one_stretch_with_the_highest_value():
    found = marked([0.1, 0.2, 0.9, 0.6, 0.7, 0.1, 0.8])
    assert [(CLAIM[d.start : d.end], d.probability) for d in found] == [("built in 1887", 0.9), ("Rome", 0.8)]


def test_what_is_borne_out_is_not_marked():
    assert marked([0.49] * 7) == ()


def test_a_word_counts_by_its_most_doubtful_token():
    assert word_doubts("not unbelievable", [(0, 3), (4, 6), (6, 13), (13, 16)], [0.3, 0.1, 0.7, 0.2]) == [0.3, 0.7]


@pytest.fixture
def backend(tmp_path):
    torch.manual_seed(0)
    write_tokenizer(tmp_path)
    shape = BertShape(len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    Verifier(Bert(shape)).save(tmp_path, Vocabulary.load(tmp_path).tokenizer)
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
    for asked in (backend, Recollection(backend, 10)):
        replies = asked.answer_many([Mark((PAIR,)), Entail((PAIR, PAIR)), Mark((PAIR, PAIR))])
        assert [len(r) for r in replies] == [1, 2, 2]
        assert replies[1] == backend.score([PAIR, PAIR])
        assert replies[0][0] == replies[2][1] == backend.mark([PAIR])[0]
