"""External verifiers: every architecture answers as the packaged verifier does, and as its own library would read the text."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from knowhalu.encoder.external import open_verifier
from knowhalu.requests import Entail, EntailmentPair, TagSpans
from knowhalu.text.sentences import windows, words
from tests.support.tiny_verifiers import FAMILIES, card, rename_outputs, sequence_classifier

PAIRS = [
    EntailmentPair("snow is white. " * n, "the snow " * m, question)
    for n, m, question in ((1, 1, None), (40, 2, None), (9, 60, None), (41, 2, "is the snow"), (1, 2, None), (300, 5, None))
]
TWO_LABELS = ("roberta", "deberta", "factcg", "t5", "hhem", "lettucedetect")


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_depend_neither_on_batching_nor_on_order(folders, backends, name):
    alone = [backends(name).score([pair])[0] for pair in PAIRS]
    for tokens, pairs in ((600, PAIRS), (50_000, PAIRS[::-1]), (4096, PAIRS[3:] + PAIRS[:3])):
        found = dict(zip(pairs, open_verifier(folders(name), precision="fp32", tokens=tokens).score(pairs), strict=True))
        for pair, score in zip(PAIRS, alone, strict=True):
            assert found[pair] == pytest.approx(score, abs=1e-3)
    assert all(sum(score) == pytest.approx(1, abs=1e-5) for score in alone)
    assert len({round(score.supported, 4) for score in alone}) > 3


@pytest.mark.parametrize("name", TWO_LABELS)
def test_model_with_two_outputs_contradicts_nothing(backends, name):
    for score in backends(name).score(PAIRS):
        assert score.contradicted == 0 and score.neutral == pytest.approx(1 - score.supported, abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_long_source_has_the_score_of_its_best_window(backends, name):
    backend = backends(name)
    source = " ".join(f"the snow {i} is white." for i in range(900))
    whole = backend.score([EntailmentPair(source, "snow is white")])[0]
    size = backend.card.window
    parts = backend.score([EntailmentPair(w.text, "snow is white") for w in windows(source, size, size // 3)])
    assert len(parts) > 2 and whole == pytest.approx(max(parts, key=lambda p: p.supported), abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_row_never_exceeds_the_length_of_the_model(backends, name):
    backend, numbers = backends(name), ",".join(str(i) for i in range(800))
    pairs = [EntailmentPair(numbers, "snow"), EntailmentPair("snow", numbers), EntailmentPair(numbers, numbers, numbers)]
    rows = backend._window_rows(pairs)
    assert max(len(row.tokens.ids) for row in rows) <= backend.vocabulary.max_length
    assert {row.pair for row in rows} == {0, 1, 2}


def test_padding_stays_within_the_positions_of_the_model(tmp_path):
    backend = open_verifier(sequence_classifier(tmp_path, max_position_embeddings=75), precision="fp32")
    assert backend.vocabulary.max_length == 75
    scores = backend.score([EntailmentPair("snow is white " * n, "the snow " * m) for n in range(30) for m in (1, 20, 60)])
    assert len(scores) == 90


def test_all_of_a_source_and_of_a_claim_is_read(backends):
    backend, text = backends("bert"), "snow " + ",".join(str(i) for i in range(400)) + " is white"
    name, (whole,) = backend.vocabulary.tokenizer.id_to_token, backend.vocabulary.pieces([text])
    read = [r.tokens.ids[1 : r.tokens.second_start - 1] for r in backend._window_rows([EntailmentPair(text, "the snow")])]
    found = {tuple(part[i : i + 4]) for part in read for i in range(len(part) - 3)}
    assert len(read) > 2 and all(tuple(whole[i : i + 4]) in found for i in range(len(whole) - 3))
    pieces = {r.piece: r.tokens.ids[r.tokens.claim_start : -1] for r in backend._window_rows([EntailmentPair("snow", text)])}
    letters = [name(i).removeprefix("##") for _, ids in sorted(pieces.items()) for i in ids]  # a cut makes a new word
    assert len(pieces) > 2 and "".join(letters) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("name", "marks"), [("bert", ["[SEP]", "[CLS]"]), ("roberta", ["</s>", "<pad>"]), ("hhem", ["<pad>", "</s>"])]
)
def test_name_of_a_special_token_in_a_text_stays_text(backends, name, marks):
    backend = backends(name)
    ids = {backend.vocabulary.tokenizer.token_to_id(mark) for mark in marks}
    plain, hostile = (
        backend._window_rows([EntailmentPair(f"snow {a} white", f"the {b} snow")])[0].tokens.ids for a, b in (("is", "of"), marks)
    )
    assert sum(i in ids for i in hostile) == sum(i in ids for i in plain) and len(hostile) > 5


def test_question_is_part_of_the_input(backends):
    for name in FAMILIES:
        asked, plain = backends(name).score([EntailmentPair("snow", "white", "is the snow"), EntailmentPair("snow", "white")])
        assert asked != plain


# --- the classes of the outputs ---------------------------------------------------------------------------------------


def test_order_of_the_labels_is_respected(backends, copied):
    pair = EntailmentPair("the snow is white", "snow is white")
    entailed, neutral, contradicted = (backends("bert").score([pair])[0][i] for i in (0, 2, 1))
    folder = rename_outputs(copied("bert"), "CONTRADICTION", "Entailment", "neutral")
    assert open_verifier(folder, precision="fp32").score([pair])[0] == pytest.approx((neutral, entailed, contradicted), abs=1e-6)
    card(folder, labels=["neutral", "contradicted", "supported"])
    assert open_verifier(folder, precision="fp32").score([pair])[0] == pytest.approx((contradicted, neutral, entailed), abs=1e-6)


def test_two_labels_of_config_json_are_supported_or_not(tmp_path):
    folder = sequence_classifier(tmp_path, labels=("contradiction", "entailment"))
    assert open_verifier(folder).classes == ("unsupported", "supported")


def test_single_output_is_the_log_odds_of_support(tmp_path):
    folder = card(sequence_classifier(tmp_path, labels=("LABEL_0",)), labels=["supported"])
    score = open_verifier(folder, precision="fp32").score([EntailmentPair("snow", "white")])[0]
    assert 0 < score.supported < 1 and score.contradicted == 0 and score.neutral == pytest.approx(1 - score.supported, abs=1e-6)


# --- as published -----------------------------------------------------------------------------------------------------


def encoded(folder, *texts):
    found = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(*texts)
    return torch.tensor([found.ids]), torch.ones(1, len(found.ids), dtype=torch.long)


@torch.inference_mode()
def test_minicheck_t5_compares_the_two_answer_tokens(folders, backends):
    from transformers import T5ForConditionalGeneration

    folder = folders("t5")
    ids, mask = encoded(folder, "predict: the snow</s>white")
    model = T5ForConditionalGeneration.from_pretrained(folder, dtype="float32").eval()
    logits = model(input_ids=ids, attention_mask=mask, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits[0, 0]
    answers = [Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(t) for t in ("▁", "▁1")]
    expected = logits[answers].softmax(-1)[1].item()
    assert backends("t5").score([EntailmentPair("the snow", "white")])[0].supported == pytest.approx(expected, abs=1e-5)


def test_output_embeddings_of_flan_t5_stay_its_own(copied):
    folder = copied("t5")
    weights, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    weights["lm_head.weight"] = -weights["shared.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    model = open_verifier(folder, precision="fp32").model
    assert torch.equal(model.lm_head.weight, -model.shared.weight) and torch.equal(
        model.shared.weight, model.encoder.embed_tokens.weight
    )


@torch.inference_mode()
def test_hhem_reads_the_first_position_of_its_prompt(folders, backends):
    from transformers import T5Config, T5ForTokenClassification

    folder, asked = folders("hhem"), "<pad> Determine if the hypothesis is true given the premise?"
    ids, mask = encoded(folder, f"{asked}\n\nPremise: the snow\n\nHypothesis: white")
    assert ids[0, 0] == 0
    config = T5Config(vocab_size=backends("hhem").model.config.vocab_size, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
                      feed_forward_proj="gated-gelu", num_labels=2)  # fmt: skip
    model = T5ForTokenClassification(config).eval()
    model.load_state_dict({k.removeprefix("t5."): v for k, v in load_file(folder / "model.safetensors").items()}, strict=False)
    model.tie_weights()
    expected = model(input_ids=ids, attention_mask=mask).logits[0, 0].softmax(-1)[1].item()
    assert backends("hhem").score([EntailmentPair("the snow", "white")])[0].supported == pytest.approx(expected, abs=1e-5)


@torch.inference_mode()
def test_alignscore_applies_its_three_way_head_to_the_pooled_vector(folders, backends):
    from transformers import AutoConfig, RobertaModel

    folder, weights = folders("alignscore"), load_file(folders("alignscore") / "model.safetensors")
    model = RobertaModel(AutoConfig.from_pretrained(folder)).eval()
    model.load_state_dict({k.removeprefix("base_model."): v for k, v in weights.items() if k.startswith("base_model.")})
    ids, mask = encoded(folder, "the snow", "white")
    pooled = model(input_ids=ids, attention_mask=mask).pooler_output
    expected = (pooled @ weights["tri_layer.weight"].T + weights["tri_layer.bias"]).softmax(-1)[0]
    found = backends("alignscore").score([EntailmentPair("the snow", "white")])[0]
    assert found == pytest.approx((expected[0].item(), expected[2].item(), expected[1].item()), abs=1e-5)


@torch.inference_mode()
def test_lettucedetect_scores_a_claim_by_its_worst_token(folders, backends):
    from transformers import AutoModelForTokenClassification

    folder, backend, pair = folders("lettucedetect"), backends("lettucedetect"), EntailmentPair("the snow", "snow is white")
    ids, mask = encoded(folder, "Summarize the following text:\nthe snow\noutput:\n", "snow is white")
    model = AutoModelForTokenClassification.from_pretrained(folder, dtype="float32").eval()
    tokens = model(input_ids=ids, attention_mask=mask).logits[0].softmax(-1)[-4:-1, 1]
    score, found = backend.score([pair])[0], backend.unsupported_probabilities([pair])[0]
    assert score.supported == pytest.approx(1 - tokens.max().item(), abs=1e-5)
    assert found == pytest.approx(tokens.tolist(), abs=1e-5)
    spans = backend.tag_spans([pair])[0]
    inside = {i for i, w in enumerate(words(pair.claim)) if any(s.start <= w.start and w.end <= s.end for s in spans)}
    assert inside == {i for i, p in enumerate(found) if p >= 0.5}


def test_only_token_classifiers_tag_spans_and_one_forward_pass_gives_both(backends, monkeypatch):
    pair = EntailmentPair("the snow", "white of snow")
    assert backends("bert").answer_many([TagSpans((pair,)), Entail((pair,))])[0] == [()]
    backend, computed = backends("lettucedetect"), []
    forward = backend._forward
    monkeypatch.setattr(backend, "_forward", lambda rows: computed.append(len(rows)) or forward(rows))
    backend.answer_many([Entail((pair,)), TagSpans((pair,))])
    assert sum(computed) == 1


# --- where verifier.toml lies -----------------------------------------------------------------------------------------


def test_card_beside_the_folder_names_its_model(folders, tmp_path):
    shutil.copytree(folders("roberta"), tmp_path / "model")
    (tmp_path / "model" / "verifier.toml").unlink()
    card(tmp_path, preset="minicheck-roberta", model="model")
    pair = EntailmentPair("the snow", "white")
    parent, inner = (open_verifier(place, precision="fp32").score([pair]) for place in (tmp_path, tmp_path / "model"))
    assert parent == inner == open_verifier(folders("roberta"), precision="fp32").score([pair])
