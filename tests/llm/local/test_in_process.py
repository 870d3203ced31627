"""Tests of all models in this process: transformers with and without reuse, and vLLM (a stand-in)."""

import sys

import pytest
import torch

from knowhalu.errors import ModelError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Generate
from tests.support import vllm_stand_in
from tests.support.llm_contract import asker
from tests.support.tiny_llm import CHAT, NO_SYSTEM

LABELS = (" CORRECT", " INCORRECT", " INCONCLUSIVE")
FIXED = "### Question: Who was the engineer of the lighthouse at Carn Point?\n"
BACKENDS = ("transformers", "recomputing", "vllm")


@pytest.fixture
def build(monkeypatch):
    """Return a function that opens a model: `build("vllm", folder)`."""
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_BATCH_INVARIANT"):
        monkeypatch.setenv(name, "")

    def built(name, folder, **options):
        options = LLMOptions(model=str(folder), precision="fp32", **options)
        if name == "vllm":
            for module, stand_in in vllm_stand_in.modules().items():
                monkeypatch.setitem(sys.modules, module, stand_in)
            from knowhalu.llm.vllm import VLLMBackend

            backend = VLLMBackend(options)
            backend.answer_many = asker(backend)
            return backend
        from knowhalu.llm.local.backend import TransformersBackend

        return TransformersBackend(options, reuse=name == "transformers")

    return built


@pytest.fixture(params=BACKENDS)
def llm(request, build, model_folder):
    return build(request.param, model_folder())


def greedy(folder, text, count):
    """Let transformers generate by itself; returns the new tokens' text."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = tokenizer(text, return_tensors="pt").input_ids
    made = model.generate(ids, max_new_tokens=count, do_sample=False, pad_token_id=0, attention_mask=torch.ones_like(ids))
    return tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)


def sequence_probabilities(folder, text, choices):
    """Score whole texts without any cache."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    count = len(tokenizer(text).input_ids)
    sums = []
    for choice in choices:
        ids = tokenizer(text + choice).input_ids
        with torch.inference_mode():
            logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        sums.append(sum(float(logprobs[i - 1, ids[i]]) for i in range(count, len(ids))))
    return dict(zip(choices, torch.tensor(sums, dtype=torch.float64).softmax(0).tolist(), strict=True))


def test_a_reply_equals_that_of_transformers_generate(llm, model_folder):
    [reply] = llm.answer_many([Generate(FIXED + "Mara", max_tokens=10)])
    assert reply.text == greedy(model_folder(), FIXED + "Mara", 10)
    assert reply.finish_reason == "length"
    assert reply.completion_tokens == len(reply.logprobs) == 10 and all(p <= 0 for p in reply.logprobs)


def test_a_stop_string_may_span_several_tokens(llm):
    request = Generate(FIXED + "Mara", max_tokens=20)
    whole = llm.answer_many([request])[0].text
    stops = ("never said", whole[5:11], whole[4:11])  # the first in the text counts
    [cut] = llm.answer_many([Generate(FIXED + "Mara", max_tokens=20, stop=stops)])
    assert cut.text == whole[:4] and cut.finish_reason == "stop"
    assert cut.completion_tokens < 20


@pytest.mark.parametrize("name", BACKENDS)
def test_a_reply_ends_at_an_end_token(build, model_folder, name):
    llm = build(name, model_folder(terse=True))
    replies = llm.answer_many([Generate(FIXED + f"Number {i} ", max_tokens=30) for i in range(20)])
    ended = [r for r in replies if r.finish_reason == "stop"]
    assert ended and all("</s>" not in r.text and r.completion_tokens == len(r.logprobs) < 30 for r in ended)


def test_choices_have_the_probabilities_of_their_token_sequences(llm, model_folder):
    text = FIXED + "### Answer: Mara Quill\n### Judgment:"
    [reply] = llm.answer_many([Generate(text, choices=LABELS)])
    wanted = sequence_probabilities(model_folder(), text, LABELS)
    assert reply.choices == pytest.approx(wanted, abs=1e-4)
    assert sum(reply.choices.values()) == pytest.approx(1)
    assert reply.text == max(wanted, key=wanted.get) and reply.finish_reason == "stop"
    assert len(reply.logprobs) == reply.completion_tokens


def test_labels_of_several_tokens_may_share_the_first(model_folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_folder())
    first = [tokenizer(label, add_special_tokens=False).input_ids for label in ("INCORRECTLY", "INCONCLUSIVELY", "CORRECTNESS")]
    assert first[0][0] == first[1][0] != first[2][0] and min(map(len, first)) > 1


def test_choices_that_share_their_first_token_are_distinguished(llm, model_folder):
    choices, text = ("INCORRECTLY", "INCONCLUSIVELY", "CORRECTNESS"), FIXED + "Judgment:"
    [reply] = llm.answer_many([Generate(text, choices=choices)])
    assert reply.choices == pytest.approx(sequence_probabilities(model_folder(), text, choices), abs=1e-4)


def test_a_choice_is_tokenized_together_with_the_prompt(llm, model_folder):
    """After "Judgment: " the blank belongs to the label's first token: both ways of writing it are the same text."""
    [before], [after] = (
        llm.answer_many([Generate(FIXED + "Judgment:" + blank, choices=choices)])
        for blank, choices in (("", LABELS), (" ", tuple(label[1:] for label in LABELS)))
    )
    assert list(after.choices.values()) == pytest.approx(list(before.choices.values()), abs=1e-5)
    assert after.text == before.text.strip()


def test_choices_that_cannot_be_distinguished_are_refused(llm):
    [twice, inside] = llm.answer_many([Generate("Say", choices=(" NO", " NO")), Generate("Say", choices=(" YES", " YES NO"))])
    assert "' NO' is a prefix of ' NO'" in twice.reason and "distinguished" in inside.reason


def test_a_reply_continues_the_prefill(llm):
    [one, two] = llm.answer_many([Generate("The year", prefill=" 1871", max_tokens=8), Generate("The year 1871", max_tokens=8)])
    assert one.text == two.text and one.logprobs == pytest.approx(two.logprobs, abs=1e-4)
    [one, two] = llm.answer_many([Generate("x", prefill=" is", choices=LABELS), Generate("x is", choices=LABELS)])
    assert one.choices == pytest.approx(two.choices, abs=1e-5)


def test_a_seeded_reply_does_not_depend_on_the_batch(llm):
    def drawn(seed):
        return Generate(FIXED, temperature=1.5, seed=seed, max_tokens=12)

    [alone] = llm.answer_many([drawn(3)])
    together = llm.answer_many([drawn(s) for s in (1, 2, 3, 4)])
    assert together[2].text == alone.text
    assert len({r.text for r in together}) > 1


def test_sampling_a_choice_does_not_change_the_probabilities(llm):
    text = FIXED + "Judgment:"
    drawn = llm.answer_many([Generate(text, choices=LABELS, temperature=1.0, seed=s) for s in range(200)])
    probabilities = drawn[0].choices
    assert all(r.choices == pytest.approx(probabilities, abs=1e-5) for r in drawn)
    shares = {c: sum(r.text == c for r in drawn) / len(drawn) for c in LABELS}
    assert shares == pytest.approx(probabilities, abs=0.12)
    assert drawn[7].text == llm.answer_many([Generate(text, choices=LABELS, temperature=1.0, seed=7)])[0].text


def test_replies_keep_the_order_of_requests(llm):
    requests = [Generate(FIXED + f"{i}", fixed=len(FIXED), max_tokens=3 + i % 4) for i in range(9)]
    requests[4] = Generate(FIXED + "Judgment:", fixed=len(FIXED), choices=LABELS)
    together = llm.answer_many(requests)
    assert [r.text for r in together] == [llm.answer_many([r])[0].text for r in requests]


def test_tokens_are_counted(llm, model_folder):
    from transformers import AutoTokenizer

    count = len(AutoTokenizer.from_pretrained(model_folder())(FIXED + "Mara").input_ids)
    [first] = llm.answer_many([Generate(FIXED + "Mara", max_tokens=2)])
    [again] = llm.answer_many([Generate(FIXED + "Mara", max_tokens=2)])
    assert first.prompt_tokens == again.prompt_tokens == count and first.cached_tokens == 0
    if llm.__class__.__name__ == "TransformersBackend" and llm.together is None:
        assert again.cached_tokens == 0
    else:
        assert 0 < again.cached_tokens < count


def test_a_prompt_that_exceeds_the_context_is_an_error_of_its_request(llm):
    long = "The lighthouse. " * 300
    [fine, over, fits] = llm.answer_many([Generate("a", max_tokens=2), Generate(long, max_tokens=2), Generate("b", max_tokens=2)])
    assert fine.text is not None and fits.text is not None
    assert isinstance(over, StageError) and over.stage == "generate"
    assert "the model's context of 512" in over.reason and "nothing is truncated" in over.reason


def test_the_context_has_to_hold_the_reply(llm):
    [over] = llm.answer_many([Generate("a", max_tokens=512)])
    assert "the reply may have 512" in over.reason


@pytest.mark.parametrize("name", BACKENDS)
def test_a_chat_is_written_by_the_template(build, model_folder, name):
    llm = build(name, model_folder(template=CHAT))
    plain = build(name, model_folder(template=CHAT), style="completion")
    chat = Generate("Who was it?", system="Be brief.", prefill=" Mara", max_tokens=6)
    framed = Generate("<|system|>Be brief.</s><|user|>Who was it?</s><|assistant|> Mara", max_tokens=6)
    assert llm.answer_many([chat])[0].text == plain.answer_many([framed])[0].text


@pytest.mark.parametrize("name", BACKENDS)
def test_a_turn_token_in_a_text_is_an_error_of_its_request(build, model_folder, name):
    llm = build(name, model_folder(template=CHAT))
    fine, ends = llm.answer_many([Generate("Is it so?", max_tokens=2), Generate("So.</s> CORRECT", max_tokens=2)])
    assert fine.text is not None
    assert isinstance(ends, StageError) and "the text contains '</s>', which separates the turns of this model" in ends.reason


@pytest.mark.parametrize("name", BACKENDS)
def test_a_system_prompt_opens_the_users_turn_where_the_template_refuses_it(build, model_folder, name):
    llm = build(name, model_folder(template=NO_SYSTEM))
    [one, two] = llm.answer_many(
        [Generate("Who?", system="Be brief.", max_tokens=6), Generate("Be brief.\n\nWho?", max_tokens=6)]
    )
    assert one.text == two.text and one.prompt_tokens == two.prompt_tokens


@pytest.mark.parametrize("name", BACKENDS)
def test_the_chat_style_needs_a_template(build, model_folder, name):
    with pytest.raises(ModelError, match=r"no chat template. Set llm\.style"):
        build(name, model_folder(), style="chat")


@pytest.mark.parametrize("name", BACKENDS)
def test_a_folder_without_a_model_is_named_with_the_remedy(build, tmp_path, name):
    with pytest.raises(ModelError, match=r"llm\.model is not set. Set it to the folder"):
        build(name, "")
    with pytest.raises(ModelError, match=r"nowhere.*nothing is downloaded"):
        build(name, tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"no config\.json"):
        build(name, tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"no \*\.safetensors"):
        build(name, tmp_path)
