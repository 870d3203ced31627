"""Training for late interaction: loss, negatives, budget and resumption."""

import gzip
import json
from dataclasses import replace

import pytest
import torch

from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.errors import InputError, ResumeError
from knowhalu.training.late import (
    LateSettings,
    LateTrainer,
    RetrievalQuestion,
    contrastive_loss,
    evaluate_retrieval,
    maxsim_scores,
    mine_hard_negatives,
    read_corpus,
    score_rankings,
)
from tests.support.searching import WordVectors, corpus
from tests.support.tiny import VOCABULARY, write_tokenizer

SETTINGS = LateSettings(steps=6, layers=1, dimension=8, batch=3, hard=1, tokens=32)
PASSAGES = {f"p{i}": f"the {word} of {word}" for i, word in enumerate(("snow", "rain", "sand", "wind", "salt", "fire"))}
QUESTIONS = [
    RetrievalQuestion(f"white {text.split()[1]}", [name], [other for other in PASSAGES if other != name], PASSAGES)
    for name, text in PASSAGES.items()
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A tiny BERT as a checkpoint of the library's names."""
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("base")
    write_tokenizer(folder)
    shape = BertShape(len(VOCABULARY), 16, 2, 2, 32, 64)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **vars(shape)}))
    torch.manual_seed(0)
    names = {
        "words": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings",
        "types": "embeddings.token_type_embeddings", "norm": "embeddings.LayerNorm", "query": "attention.self.query",
        "key": "attention.self.key", "value": "attention.self.value", "out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm", "up": "intermediate.dense", "down": "output.dense",
    }  # fmt: skip
    weights = {}
    for name, value in Bert(shape).state_dict().items():
        head, leaf = name.rsplit(".", 1)
        if head.startswith("layers."):
            _, number, part = head.split(".")
            part = "output.LayerNorm" if part == "norm" else names[part]
            head = f"encoder.layer.{number}.{part}"
        else:
            head = names[head]
        weights[f"{head}.{leaf}"] = value.contiguous()
    save_file(weights, folder / "model.safetensors")
    return folder


def test_maxsim_scores_of_a_small_case():
    queries = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])  # the third token is padding
    passages = torch.tensor([[[0.6, 0.8], [1.0, 0.0]], [[0.0, -1.0], [1.0, 1.0]]])  # so is the last one of the second
    counted, kept = torch.tensor([[True, True, False]]), torch.tensor([[True, True], [True, False]])
    assert maxsim_scores(queries, counted, passages, kept).tolist()[0] == pytest.approx([(1.0 + 0.8) / 2, (0.0 - 1.0) / 2])


def test_other_relevant_passages_are_no_negatives():
    found = torch.tensor([[0.5, 0.9, 0.1]])
    alone = contrastive_loss(found, torch.tensor([[1.0, -1.0, 0.0]]), 0.1)
    against = contrastive_loss(found, torch.tensor([[1.0, 0.0, 0.0]]), 0.1)
    assert alone.item() == pytest.approx(torch.log(1 + torch.exp(torch.tensor(-4.0))).item(), abs=1e-5)
    assert against > alone


def test_late_training_lowers_the_loss_and_freezes_lower_layers(base, tmp_path):
    settings = replace(SETTINGS, steps=60, rate=5e-3)
    trainer = LateTrainer(base, [QUESTIONS], tmp_path, settings)
    lower = trainer.model.bert.layers[0].up.weight.clone()
    losses = []
    trainer.run(lambda p: losses.append(p.loss))
    assert losses[-1] < losses[0] and torch.equal(trainer.model.bert.layers[0].up.weight, lower)


def test_a_stopped_late_run_ends_with_the_same_weights(base, tmp_path):
    whole = LateTrainer(base, [QUESTIONS, QUESTIONS[:3]], tmp_path / "whole", SETTINGS).run(lambda p: None)

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    first = LateTrainer(base, [QUESTIONS, QUESTIONS[:3]], tmp_path / "parts", SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        first.run(stop, every=0.0)
    second = LateTrainer(base, [QUESTIONS, QUESTIONS[:3]], tmp_path / "parts", SETTINGS)
    assert second.progress.step == 2  # the step at which it was stopped is done again
    for name, value in second.run(lambda p: None).state_dict().items():
        assert torch.allclose(value, whole.state_dict()[name], atol=1e-6), name


def test_the_checkpoint_of_another_late_run_or_a_damaged_one_is_refused(base, tmp_path):
    LateTrainer(base, [QUESTIONS], tmp_path, SETTINGS).save()
    with pytest.raises(ResumeError, match="another --out"):
        LateTrainer(base, [QUESTIONS], tmp_path, replace(SETTINGS, seed=1))
    with pytest.raises(ResumeError, match="on other questions"):
        LateTrainer(base, [QUESTIONS[:-1]], tmp_path, SETTINGS)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"broken")
    with pytest.raises(ResumeError, match="damaged"):
        LateTrainer(base, [QUESTIONS], tmp_path, SETTINGS)


def test_hard_negatives_share_words_and_are_not_relevant():
    passages = corpus(["red river", "river stone", "cloud"])
    (question,) = mine_hard_negatives(
        [{"query": "river stone", "positives": ["d1#1"]}, {"query": "x", "positives": ["gone"]}], passages
    )
    assert (question.right, question.wrong) == (["d1#1"], ["d0#1"])


def test_retrieval_scores_of_a_small_case():
    rows = [{"positives": ["a"]}, {"positives": ["b", "c"]}, {"positives": ["z"]}, {"positives": ["k"]}]
    rankings = ["ab", "xc", "ab", "abcdefghijk"]
    assert score_rankings(rankings, rows) == pytest.approx((1 / 4, 2 / 4, (1 + 1 / 2 + 1 / 11) / 4))


def test_evaluation_ranks_every_passage():
    passages = corpus([f"river stone{i}" for i in range(600)])
    rows = [{"query": f"stone{i}", "positives": [f"d{i}#1"]} for i in (0, 300, 599)]
    assert evaluate_retrieval(WordVectors(), passages, rows).recall1 == 1.0


def test_a_broken_line_is_reported_with_its_number(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"doc_id": "1", "text": "x"}\nbroken\n'))
    with pytest.raises(InputError, match="x.jsonl.gz, line 2: not JSON"):
        read_corpus(path)
    with pytest.raises(InputError, match="gone: no such file"):
        read_corpus(tmp_path / "gone")
