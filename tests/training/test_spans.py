"""Token targets: exactly the tokens of wrong words, and none where nothing is known."""

import torch

from knowhalu.encoder.verifier import PairTokenizer
from knowhalu.training.batches import UNKNOWN_TARGET, pad_targets, token_targets, tokenize
from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, TrainingExample, unsupported_token_spans, wrong_span
from knowhalu.training.loop import span_loss

CLAIM = "the bridge was opened in rome"


def marks(base, *examples):
    vocabulary = PairTokenizer.load(base)
    rows = tokenize(list(examples), vocabulary)
    return vocabulary, rows, token_targets(examples, rows, vocabulary)


def test_token_targets_mark_exactly_the_wrong_words(base):
    at = CLAIM.index("opened")
    example = TrainingExample("the river is long", "was it so?", CLAIM, CONTRADICTED, ((at, at + len("opened")),))
    vocabulary, (row,), ((start, targets),) = marks(base, example)
    assert row.ids[start:-1] == vocabulary.pieces([CLAIM])[0], "targets stand where the claim does"
    wrong = [i for i, t in zip(row.ids[start:], targets, strict=False) if t == 1]
    assert wrong == vocabulary.pieces(["opened"])[0]


def test_supported_claims_have_no_wrong_token_and_unknown_ones_no_target(base):
    _, _, ((_, right), (_, unknown)) = marks(
        base, TrainingExample("a", "", CLAIM, SUPPORTED), TrainingExample("a", "", CLAIM, NEUTRAL)
    )
    assert set(right) == {0.0}
    assert unknown == []


def test_the_targets_of_a_cut_claim_stay_within_its_row(base):
    long = " ".join(["bridge"] * 400)
    _, (row,), ((start, targets),) = marks(base, TrainingExample("the river", "", long, CONTRADICTED, ((0, 6),)))
    assert start + len(targets) == len(row.ids) - 1
    assert targets[0] == 1 and sum(targets) < len(targets)


def test_the_token_loss_ignores_unlabelled_tokens():
    targets = pad_targets([(1, [1.0, 0.0]), (0, [])], 4)
    assert targets.tolist() == [[UNKNOWN_TARGET, 1, 0, UNKNOWN_TARGET], [UNKNOWN_TARGET] * 4]
    sure = torch.tensor([[9.0, 30.0, -30.0, 9.0], [9.0] * 4])
    assert span_loss(sure, targets) < 1e-6
    assert span_loss(-sure, targets) > 10
    assert span_loss(sure, torch.full((2, 4), UNKNOWN_TARGET)) == 0


def test_unsupported_tokens_of_a_row_become_spans_of_its_claim():
    row = {"claim": "Raza, aged 24, ran.", "claim_tokens": ["Raza", ",", "aged", "24", ",", "ran", "."]}
    row["non_supported"] = [False, False, True, True, False, False, False]
    assert [row["claim"][a:b] for a, b in unsupported_token_spans(row)] == ["aged 24"]
    assert unsupported_token_spans({**row, "claim": "Someone else."}) is None


def test_the_wrong_word_of_the_writer_is_located():
    assert wrong_span({"text": "It is nine metres long.", "wrong": "nine"}) == ((6, 10),)
    assert wrong_span({"text": "It is long.", "wrong": None}) is None
    assert wrong_span({"text": "In 1911 it was 11 metres long.", "wrong": "11"}) == ((15, 17),)
    assert wrong_span({"text": "İsmet came after Atatürk.", "wrong": "Atatürk"}) == ((17, 24),)
