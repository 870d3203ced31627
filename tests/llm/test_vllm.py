"""The options and requests given to vLLM in process, with a stand-in for the package; vLLM itself is not run here."""

import asyncio
import json
import os
import sys
import threading

import pytest

from knowhalu.build import fingerprint
from knowhalu.errors import BackendError, MissingExtra, ModelError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.vllm import VLLMBackend
from knowhalu.profiles import load_settings
from knowhalu.requests import Generate
from tests.support import vllm_stand_in
from tests.support.hanging import HANG
from tests.support.llm_contract import asker

LABELS = Generate("Judgment:", choices=("INCORRECTLY", "INCONCLUSIVELY"))


@pytest.fixture
def vllm(monkeypatch):
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_BATCH_INVARIANT"):
        monkeypatch.setenv(name, "")
    modules = vllm_stand_in.modules()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["vllm"]


@pytest.fixture
def backend(vllm, model_folder):
    return VLLMBackend(LLMOptions(model=str(model_folder())))


@pytest.fixture
def adapter(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 24, "peft_type": "LORA"}))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    return tmp_path


def test_the_engine_is_set_up_from_the_options(vllm, model_folder):
    folder = str(model_folder())
    llm = VLLMBackend(LLMOptions(model=folder, precision="bf16", tensor_parallel=2, gpu_memory=0.5, max_length=300, seed=5)).llm
    assert (llm.model, llm.dtype, llm.tensor_parallel_size, llm.gpu_memory_utilization) == (folder, "bfloat16", 2, 0.5)
    assert (llm.max_model_len, llm.seed, llm.enable_prefix_caching, llm.load_format) == (300, 5, True, "safetensors")
    assert not llm.trust_remote_code and llm.logprobs_mode == "raw_logprobs"


def test_further_arguments_reach_the_engine(vllm, model_folder):
    engine = {"enforce_eager": True, "quantization": "fp8", "max_num_seqs": 7, "enable_prefix_caching": False}
    llm = VLLMBackend(LLMOptions(model=str(model_folder()), engine=engine)).llm
    assert {name: getattr(llm, name) for name in engine} == engine


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"max_num_seq": 7}, r"llm.engine.max_num_seq: vLLM's engine has no such argument. Did you mean max_num_seqs\?"),
        ({"zzz": 7}, "See the engine arguments"),
        ({"trust_remote_code": True}, "code of a model never runs"),
        ({"model": "other"}, "cannot be set. Use llm.model"),
        ({"load_format": "pt"}, "Use safetensors"),
    ],
)
def test_an_argument_that_the_engine_must_not_have_is_one_error(vllm, model_folder, engine, message):
    with pytest.raises(SettingsError, match=message):
        VLLMBackend(LLMOptions(model=str(model_folder()), engine=engine))


def test_engine_arguments_are_settings_that_decide_a_result(tmp_path):
    def run(*pairs):
        return fingerprint(load_settings(pairs=["reasoner=llm", *pairs]))["settings"]

    settings = load_settings(pairs=["llm.engine.max_num_seqs=7", "llm.engine.enforce_eager=true"])
    assert settings.llm.engine == {"max_num_seqs": 7, "enforce_eager": True}
    assert run("llm.engine.quantization=fp8") != run() != run("llm.lora=adapter")
    assert '"engine"' not in run() and '"lora"' not in run()


def test_every_request_has_the_adapter(vllm, model_folder, adapter):
    backend = VLLMBackend(LLMOptions(model=str(model_folder()), lora=adapter))
    assert (backend.llm.enable_lora, backend.llm.max_lora_rank) == (True, 32)
    asker(backend)([LABELS, Generate("Mara", max_tokens=2)])
    assert {lora.lora_path for lora in backend.llm.llm_engine.lora.values()} == {str(adapter)}


@pytest.mark.parametrize("damage", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_folder_without_an_adapter_is_named(vllm, model_folder, adapter, damage):
    (adapter / damage).unlink()
    with pytest.raises(ModelError, match=str(adapter)):
        VLLMBackend(LLMOptions(model=str(model_folder()), lora=adapter))


def test_vllm_neither_reports_usage_nor_downloads(backend):
    assert [os.environ[n] for n in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")] == ["1"] * 4
    assert os.environ["VLLM_BATCH_INVARIANT"] == ""


def test_the_context_follows_the_options(vllm, model_folder):
    llm = VLLMBackend(LLMOptions(model=str(model_folder()), max_length=256))
    [over] = asker(llm)([Generate("The lighthouse. " * 60, max_tokens=100)])
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


def test_each_token_of_a_choice_is_forced_once(backend, monkeypatch):
    asked, engine = [], backend.llm.llm_engine
    add = engine.add_request
    monkeypatch.setattr(engine, "add_request", lambda n, p, s, **rest: asked.append((p, s)) or add(n, p, s, **rest))
    asker(backend)([LABELS])
    framed = backend.framing.frame(LABELS)
    beginnings = {(*framed.context, *c[: i + 1]) for c in framed.choices for i in range(len(c))}
    assert {(*p["prompt_token_ids"], *s.allowed_token_ids) for p, s in asked} == beginnings
    assert len(asked) == len(beginnings) < sum(map(len, framed.choices))
    assert all(s.max_tokens == 1 and s.prompt_logprobs is None for _, s in asked)


def test_a_request_joins_the_running_batch_and_leaves_it_when_done(backend, monkeypatch):
    engine = backend.llm.llm_engine
    step, begun = engine.step, threading.Event()

    def stepped():
        outputs = step()
        begun.set()
        if len(engine.steps) == 1:
            assert arrived.wait(HANG)
        return outputs

    arrived = threading.Event()
    monkeypatch.setattr(engine, "step", stepped)
    finished = []

    async def ask():
        async def one(prompt, tokens):
            finished.append((prompt, (await backend.answer(Generate(prompt, max_tokens=tokens))).completion_tokens))

        async with asyncio.TaskGroup() as group:
            group.create_task(one("Mara Quill", 12))
            await asyncio.to_thread(begun.wait, HANG)
            late = group.create_task(one("The keeper", 3))
            while not backend._loop._arriving and not late.done():
                await asyncio.sleep(0)
            arrived.set()

    asyncio.run(ask())
    assert finished == [("The keeper", 3), ("Mara Quill", 12)]
    assert [len(names) for names in engine.steps] == [1, 2, 2, 2, *[1] * 8]


def test_a_cancelled_request_is_aborted(backend, monkeypatch):
    engine = backend.llm.llm_engine
    step, begun, go_on = engine.step, threading.Event(), threading.Event()

    def stepped():
        outputs = step()
        begun.set()
        assert go_on.wait(HANG)
        return outputs

    monkeypatch.setattr(engine, "step", stepped)

    async def ask():
        task = asyncio.create_task(backend.answer(Generate("Mara", max_tokens=50)))
        await asyncio.to_thread(begun.wait, HANG)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        return await backend.answer(Generate("Mara", max_tokens=2))

    assert asyncio.run(ask()).completion_tokens == 2
    assert len(engine.aborted) == 1 and not engine.running


def test_several_event_loops_share_the_engine(backend):
    first, second = (asker(backend)([Generate("Mara", max_tokens=4)])[0] for _ in range(2))
    assert first.text == second.text and second.cached_tokens >= first.cached_tokens


def test_an_engine_that_stopped_fails_every_request(backend, monkeypatch):
    def broken():
        raise RuntimeError("out of memory")

    monkeypatch.setattr(backend.llm.llm_engine, "step", broken)
    replies = asker(backend)([Generate("Mara", max_tokens=2), Generate("Quill", max_tokens=2)])
    replies += asker(backend)([Generate("Mara", max_tokens=2)])
    assert all(isinstance(r, BackendError) and "vLLM stopped (RuntimeError: out of memory)" in r.reason for r in replies)


def test_a_refused_request_fails_alone(backend, monkeypatch):
    engine = backend.llm.llm_engine
    add = engine.add_request

    def refusing(name, prompt, params, **rest):
        if params.max_tokens == 3:
            raise ValueError("not like this")
        return add(name, prompt, params, **rest)

    monkeypatch.setattr(engine, "add_request", refusing)
    refused, fine = asker(backend)([Generate("Mara", max_tokens=3), Generate("Mara", max_tokens=2)])
    assert isinstance(refused, BackendError) and "not like this" in refused.reason
    assert fine.completion_tokens == 2


def changed_outputs(backend, monkeypatch, change):
    step, left = backend.llm.llm_engine.step, [True]

    def stepped():
        outputs = step()
        if outputs and left:
            left.clear()
            change(outputs[0].outputs[0])
        return outputs

    monkeypatch.setattr(backend.llm.llm_engine, "step", stepped)


def test_another_token_than_the_forced_one_is_an_error(backend, monkeypatch):
    changed_outputs(backend, monkeypatch, lambda reply: setattr(reply, "token_ids", [0]))
    replies = asker(backend)([Generate("Judgment:", choices=(" YES", " NO"))] * 2)
    wrong, fine = sorted(replies, key=lambda r: not isinstance(r, BackendError))
    assert isinstance(wrong, BackendError) and "was forced" in wrong.reason
    assert sum(fine.choices.values()) == pytest.approx(1)


def test_an_aborted_reply_is_an_error(backend, monkeypatch):
    changed_outputs(backend, monkeypatch, lambda reply: setattr(reply, "finish_reason", "abort"))
    replies = asker(backend)([Generate("Mara", max_tokens=2), Generate("Mara", max_tokens=2)])
    broken, fine = sorted(replies, key=lambda r: not isinstance(r, BackendError))
    assert isinstance(broken, BackendError) and "'abort'" in broken.reason and broken.reply == fine.text
