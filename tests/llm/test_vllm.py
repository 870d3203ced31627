"""The options and requests given to vLLM, with a stand-in for the package; vLLM itself is not run here."""

import os
import sys

import pytest

from knowhalu.errors import BackendError, MissingExtra, ModelError, SettingsError
from knowhalu.llm.vllm import VLLMBackend
from knowhalu.requests import Generate
from knowhalu.settings import LLMOptions
from tests.support import vllm_stand_in


@pytest.fixture
def vllm(monkeypatch):
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_BATCH_INVARIANT"):
        monkeypatch.setenv(name, "")
    module = vllm_stand_in.module()
    monkeypatch.setitem(sys.modules, "vllm", module)
    return module


def test_the_engine_is_set_up_from_the_options(vllm, model_folder):
    folder = str(model_folder())
    llm = VLLMBackend(LLMOptions(model=folder, precision="bf16", tensor_parallel=2, gpu_memory=0.5, max_length=300, seed=5)).llm
    assert (llm.model, llm.dtype, llm.tensor_parallel_size, llm.gpu_memory_utilization) == (folder, "bfloat16", 2, 0.5)
    assert (llm.max_model_len, llm.seed, llm.enable_prefix_caching, llm.load_format) == (300, 5, True, "safetensors")
    assert not llm.trust_remote_code and llm.logprobs_mode == "raw_logprobs"


def test_vllm_neither_reports_usage_nor_downloads(vllm, model_folder):
    VLLMBackend(LLMOptions(model=str(model_folder())))
    assert [os.environ[n] for n in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")] == ["1"] * 4
    assert os.environ["VLLM_BATCH_INVARIANT"] == ""


def test_the_context_follows_the_options(vllm, model_folder):
    llm = VLLMBackend(LLMOptions(model=str(model_folder()), max_length=256))
    [over] = llm.answer_many([Generate("The lighthouse. " * 60, max_tokens=100)])
    assert "the model's context of 256" in over.reason


def test_batch_invariant_kernels_are_set_before_vllm_is_imported(vllm, model_folder, monkeypatch):
    options = LLMOptions(model=str(model_folder()), deterministic=True)
    with pytest.raises(SettingsError, match="no effect"):
        VLLMBackend(options)
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    VLLMBackend(options)


def test_missing_vllm_names_the_extra(model_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"knowhalu\[vllm\]"):
        VLLMBackend(LLMOptions(model=str(model_folder())))


def test_a_model_that_vllm_cannot_load_is_named(vllm, model_folder, monkeypatch):
    def fails(**_):
        raise RuntimeError("no GPU")

    monkeypatch.setattr(vllm, "LLM", fails)
    with pytest.raises(ModelError, match=r"vLLM cannot load the model \(no GPU\)"):
        VLLMBackend(LLMOptions(model=str(model_folder())))


def test_each_token_of_a_choice_is_forced_once(vllm, model_folder, monkeypatch):
    llm = VLLMBackend(LLMOptions(model=str(model_folder())))
    asked = []
    generate = llm.llm.generate
    monkeypatch.setattr(llm.llm, "generate", lambda p, s, **k: asked.extend(zip(p, s, strict=True)) or generate(p, s, **k))
    llm.answer_many([Generate("Judgment:", choices=("INCORRECTLY", "INCONCLUSIVELY"))])
    framed = llm.framing.frame(Generate("Judgment:", choices=("INCORRECTLY", "INCONCLUSIVELY")))
    beginnings = {(*framed.context, *c[: i + 1]) for c in framed.choices for i in range(len(c))}
    assert {(*p["prompt_token_ids"], *s.allowed_token_ids) for p, s in asked} == beginnings
    assert len(asked) == len(beginnings) < sum(map(len, framed.choices))
    assert all(s.max_tokens == 1 and s.prompt_logprobs is None for _, s in asked)


def test_another_token_than_the_forced_one_is_an_error(vllm, model_folder, monkeypatch):
    llm = VLLMBackend(LLMOptions(model=str(model_folder())))
    generate = llm.llm.generate

    def others(prompts, params, **rest):
        outputs = generate(prompts, params, **rest)
        outputs[0].outputs[0].token_ids = [0]
        return outputs

    monkeypatch.setattr(llm.llm, "generate", others)
    wrong, fine = llm.answer_many([Generate("Judgment:", choices=(" YES", " NO"))] * 2)
    assert isinstance(wrong, BackendError) and "was forced" in wrong.reason
    assert sum(fine.choices.values()) == pytest.approx(1)


def test_an_aborted_reply_is_an_error(vllm, model_folder, monkeypatch):
    llm = VLLMBackend(LLMOptions(model=str(model_folder())))
    generate = llm.llm.generate

    def aborted(prompts, params, **rest):
        outputs = generate(prompts, params, **rest)
        outputs[0].outputs[0].finish_reason = "abort"
        return outputs

    monkeypatch.setattr(llm.llm, "generate", aborted)
    broken, fine = llm.answer_many([Generate("Mara", max_tokens=2), Generate("Mara", max_tokens=2)])
    assert isinstance(broken, BackendError) and "'abort'" in broken.reason and broken.reply == fine.text
