"""ROUGE, BLEU and BERTScore: the numbers of the published libraries on worked examples."""

import numpy as np
import pytest

from knowhalu.errors import ModelError
from knowhalu.evaluation.bert_score import BertScorer
from knowhalu.evaluation.similarity import bleu_counts, bleu_from_counts, rouge

PAIRS = [
    ("The bridge opened in 1932, and it is 503 metres long.", "The bridge was opened in 1932. It is 503 m long."),
    ("Mars has two moons.", "Mars has two moons."),
    ("No.", "Yes, it does."),
    ("A state-of-the-art, 1-2 model &amp; co: (see 3.5).", "A state-of-the-art model and co, see 3.5."),
    ("the the the cat", "the cat sat on the mat"),
]


@pytest.mark.parametrize(("pair", "one", "two", "longest"), list(zip(
    PAIRS, [0.818182, 1, 0, 0.833333, 0.6], [0.5, 1, 0, 0.636364, 0.25], [0.818182, 1, 0, 0.833333, 0.4], strict=True,
)))  # fmt: skip
def test_rouge_is_that_of_rouge_score_without_stemming(pair, one, two, longest):
    assert rouge(*pair) == pytest.approx({"rouge1": one, "rouge2": two, "rougeL": longest}, abs=1e-6)


@pytest.mark.parametrize(("pair", "bleu"), list(zip(PAIRS, [0.190290150, 1, 0, 0.088393743, 0.214440971], strict=True)))
def test_bleu_of_one_text_is_that_of_sacrebleu(pair, bleu):
    assert bleu_from_counts(np.array(bleu_counts(*pair))) == pytest.approx(bleu, abs=1e-9)


def test_bleu_of_a_corpus_is_that_of_its_counts_and_not_a_mean():
    counts = np.array([bleu_counts(*pair) for pair in PAIRS])
    assert bleu_from_counts(counts.sum(axis=0)) == pytest.approx(0.225730769776, abs=1e-9)
    assert bleu_from_counts(np.stack([counts.sum(axis=0), counts[1]])) == pytest.approx([0.225730769776, 1], abs=1e-9)


def test_texts_without_a_word_are_like_nothing():
    assert set(rouge("?!", "So.").values()) | set(rouge("", "").values()) == {0.0}
    assert bleu_from_counts(np.array(bleu_counts("", "So."))) == 0


def test_letters_with_accents_are_words():
    assert rouge("Über", "über")["rouge1"] == 1 and rouge("Über", "Ober")["rouge1"] == 0


def test_bertscore_is_that_of_the_published_library_in_the_same_layer():
    """The numbers are those of bert-score 0.3.13 with this folder and num_layers=5."""
    scorer = BertScorer("minilm", 5)
    assert scorer.name == "minilm, layer 5"
    assert scorer.f1(PAIRS) == pytest.approx([0.951906204, 1, 0.564795673, 0.896854758, 0.574235022], abs=1e-5)
    assert scorer.f1([("", "So.")]) == [0.0]


def test_bertscore_takes_a_local_folder_and_a_layer_that_exists(tmp_path):
    with pytest.raises(ModelError, match="no such model folder. Nothing is ever downloaded"):
        BertScorer("org/model")
    with pytest.raises(ModelError, match="is no encoder that can be loaded"):
        BertScorer(tmp_path)
    with pytest.raises(ModelError, match="has 6 layers, and not a layer 7"):
        BertScorer("minilm", 7)
