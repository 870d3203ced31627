"""The transformers backend: reuse of prefixes changes the computation and never a reply."""

import math
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.engine.engine import Backends, Engine, collect
from knowhalu.errors import MissingExtra, ModelError, StageError
from knowhalu.llm.local.attention import BatchedKVCache
from knowhalu.llm.local.backend import TransformersBackend, check_model_folder
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Generate
from knowhalu.results import Failure, Verdict
from knowhalu.types import Label, Sample, Task
from tests.support.tiny_llm import CHAT, write_model

LABELS = (" CORRECT", " INCORRECT", " INCONCLUSIVE")
FIXED = (
    "### Question: Who was the engineer of the lighthouse at Carn Point? ### Answer: Mara Quill\n",
    "### Question: Which year was it built? ### Knowledge: It was built in 1871.\n",
)
LINES = (
    "Is it granite?",
    "It stands north of the harbour.",
    "No specific information is available.",
    "né à Zürich, 1871 🙂",
    "a",
)


def opened(folder, *, reuse=True, **options):
    return TransformersBackend(LLMOptions(**{"model": str(folder), "precision": "fp32", **options}), reuse=reuse)


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert (one.text, one.finish_reason, one.prompt_tokens) == (other.text, other.finish_reason, other.prompt_tokens)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.choices == pytest.approx(other.choices, abs=1e-4)
        assert 0 <= one.cached_tokens <= one.prompt_tokens


growing = st.lists(  # (which check, its next line, whether it is judged then)
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, len(LINES) - 1), st.booleans()), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def in_turns(turns):
    """Make the requests of checks whose prompts grow, several at a time."""
    grown = [FIXED[check % 2] for check in range(4)]
    for turn in turns:
        requests = []
        for check, line, judged in turn:
            grown[check] += LINES[line] + "\n"
            prompt = grown[check][:700] + ("### Judgment:" if judged else "### Query:")
            fixed = len(FIXED[check % 2])
            requests.append(Generate(prompt, fixed=fixed, choices=LABELS if judged else (), max_tokens=4, stop=("\n",)))
        yield requests


@given(growing, st.sampled_from([None, 0, 10, 60, 100, 400]))
@settings(max_examples=25)
def test_reuse_does_not_change_the_replies_to_growing_prompts(model_folder, turns, tokens):
    """Whatever the order, and whatever had to make room."""
    llm, anew = opened(model_folder()), opened(model_folder(), reuse=False)
    assert llm.why_alone == ""
    if tokens is not None:
        llm.prefixes.limit = tokens * llm.token_bytes
    for requests in in_turns(turns):
        assert_same(llm.answer_many(requests), anew.answer_many(requests))
        assert llm.prefixes.bytes <= llm.prefixes.limit


@pytest.mark.parametrize("kind", ["qwen2", "gpt_neox", "gpt2", "phi3", "mistral"])
def test_reuse_works_for_other_architectures(model_folder, kind):
    changes = {"pad_token_id": 0} if kind == "phi3" else {"sliding_window": None} if kind == "mistral" else {}
    llm, anew = opened(model_folder(kind, **changes)), opened(model_folder(kind, **changes), reuse=False)
    assert llm.why_alone == ""
    for requests in in_turns([[(0, 1, False), (1, 2, True), (2, 3, False)], [(0, 0, True), (2, 1, True)]]):
        assert_same(llm.answer_many(requests), anew.answer_many(requests))
    assert llm.computed < anew.computed


@pytest.mark.parametrize(
    ("kind", "why"),
    [("gemma2", "softcap"), ("mamba", "LinearAttentionLayer"), ("bloom", "cannot be replaced"), ("gpt_oss", "s_aux")],
)
def test_a_model_without_plain_attention_runs_without_reuse(model_folder, kind, why):
    llm, anew = opened(model_folder(kind)), opened(model_folder(kind), reuse=False)
    assert why in llm.why_alone
    for requests in in_turns([[(0, 1, False), (1, 2, True)], [(0, 0, True)]]):
        found = llm.answer_many(requests)
        assert_same(found, anew.answer_many(requests))
        assert all(r.cached_tokens == 0 and math.isfinite(sum(r.logprobs)) for r in found)


def test_states_are_reused_within_the_sliding_window_only(model_folder):
    llm, anew = (opened(model_folder("mistral", sliding_window=64), reuse=r) for r in (True, False))
    short, long = Generate(FIXED[0], max_tokens=4), Generate(FIXED[0] * 3, max_tokens=4)
    for _ in range(2):
        found = llm.answer_many([short, long])
        assert_same(found, anew.answer_many([short, long]))
    assert found[0].cached_tokens == found[0].prompt_tokens - 1 and found[1].cached_tokens == 0
    inside = Generate(FIXED[0], max_tokens=60)  # the prompt is inside the window, its reply runs out of it
    assert_same(llm.answer_many([inside]), anew.answer_many([inside]))


def test_a_sliding_window_changes_the_logits_of_long_prompts(model_folder):
    """The test above would pass with a window that does nothing."""
    text = Generate(FIXED[0] * 3, max_tokens=8)
    [cut], [whole] = (opened(model_folder("mistral", sliding_window=w), reuse=False).answer_many([text]) for w in (64, None))
    assert cut.logprobs != pytest.approx(whole.logprobs, abs=1e-4)


def test_logits_over_a_shared_prefix_equal_those_of_the_whole_text(model_folder):
    llm = opened(model_folder())
    shared = llm.together.shared
    context = llm.framing.tokens(FIXED[0])
    ends = [llm.framing.tokens(line)[1:] for line in LINES]
    with torch.inference_mode():
        columns = BatchedKVCache.of(None, [shared.empty], len(context))
        shared.read(columns, [context])
        prefix = columns.states(0)
        found = shared.read(BatchedKVCache.of(prefix, [shared.empty] * len(ends), 99), ends)[:, -1]
        wanted = torch.stack([llm.model(torch.tensor([[*context, *end]])).logits[0, -1] for end in ends])
    assert float(wanted.abs().max()) > 1
    assert float((found - wanted).abs().max()) < 1e-4


def test_long_prompts_are_computed_in_several_forward_passes(model_folder, monkeypatch):
    requests = [Generate(FIXED[0] + LINES[i] * 9, fixed=len(FIXED[0]), max_tokens=3) for i in range(4)]
    requests += [Generate(r.prompt, fixed=r.fixed, choices=("INCONCLUSIVELY", "CORRECTNESS")) for r in requests]
    wanted = opened(model_folder(), reuse=False).answer_many(requests)
    monkeypatch.setattr("knowhalu.llm.local.forward.MAX_TOKENS_PER_FORWARD", 16)
    assert_same(opened(model_folder()).answer_many(requests), wanted)


def test_only_new_tokens_are_computed(model_folder):
    """A fixed part once, each check's own once, then what each step adds; a label costs the tokens after its first."""
    llm = opened(model_folder())
    count = lambda text: len(llm.framing.tokens(text))  # noqa: E731
    steps = [[FIXED[0] + LINES[c] + "\n" + "Is it?\n" * step for c in range(4)] for step in range(3)]
    for texts in steps:
        llm.answer_many([Generate(t, fixed=len(FIXED[0]), max_tokens=1) for t in texts])
    needed = count(FIXED[0]) + sum(count(t) - count(FIXED[0]) for t in steps[-1])
    assert llm.computed <= needed + 3 * len(LINES)


def test_equal_requests_are_computed_once(model_folder):
    llm = opened(model_folder())
    votes = [Generate(FIXED[0] + LINES[i % 2], fixed=len(FIXED[0]), max_tokens=1, temperature=1.0, seed=i) for i in range(20)]
    replies = llm.answer_many(votes)
    assert llm.computed <= len(llm.framing.tokens(FIXED[0] + LINES[0] + LINES[1])) + 2
    assert sum(r.prompt_tokens - r.cached_tokens for r in replies) == llm.computed
    assert_same(replies, opened(model_folder(), reuse=False).answer_many(votes))


def test_a_completion_models_reply_is_reused_in_the_next_prompt(model_folder):
    llm = opened(model_folder())
    [reply] = llm.answer_many([Generate(FIXED[0], max_tokens=12)])
    [again] = llm.answer_many([Generate(FIXED[0] + reply.text + "\nNext:", max_tokens=1)])
    assert reply.prompt_tokens < again.cached_tokens < again.prompt_tokens


def test_a_chat_models_reply_is_not_stored(model_folder):
    llm = opened(model_folder(template=CHAT))
    [reply] = llm.answer_many([Generate(FIXED[0], max_tokens=12)])
    assert llm.prefixes.bytes == reply.prompt_tokens * llm.token_bytes


def test_requests_are_split_into_batches_where_memory_is_short(model_folder):
    llm = opened(model_folder())
    llm.prefixes.limit = 200 * llm.token_bytes
    requests = [Generate(FIXED[0] + line * 3, fixed=len(FIXED[0]), max_tokens=20) for line in LINES * 3]
    seen = []
    answer = llm.together.answer
    llm.together.answer = lambda jobs: seen.append(len(jobs)) or answer(jobs)
    assert_same(llm.answer_many(requests), opened(model_folder(), reuse=False).answer_many(requests))
    assert len(seen) > 3 and sum(seen) == len(requests)


@pytest.mark.parametrize("reuse", [True, False])
def test_logits_that_are_nan_are_an_error(model_folder, reuse):
    llm = opened(model_folder(), reuse=reuse)
    with torch.no_grad():
        llm.model.get_input_embeddings().weight[llm.framing.tokens("granite")[-1]] = torch.nan
    fine, label, text = llm.answer_many(
        [Generate("Mara", max_tokens=2), Generate("granite", choices=LABELS), Generate("granite", max_tokens=3)]
    )
    assert fine.finish_reason == "length"
    for broken in (label, text):
        assert isinstance(broken, StageError) and "not a number" in broken.reason


def test_an_empty_prompt_is_an_error(model_folder):
    llm = opened(model_folder(template=CHAT), style="completion")
    llm.framing.__dict__["_leading_tokens"] = []
    assert "empty" in llm.answer_many([Generate("")])[0].reason


def test_damaged_weights_are_named(tmp_path):
    folder = write_model(tmp_path)
    (folder / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(ModelError, match="cannot be loaded"):
        opened(folder)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer cannot be read"):
        opened(folder)


def test_a_missing_shard_is_named(tmp_path):
    folder = write_model(tmp_path)
    index = '{"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match="incomplete, model-00002"):
        opened(folder)


@pytest.mark.parametrize("text", ['{"metadata": {"total_si', "{}", "[]", '{"weight_map": null}'])
def test_a_damaged_index_of_shards_is_named(tmp_path, text):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json: cannot be read .*Copy the folder again"):
        check_model_folder(str(tmp_path))


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_precision_follows_the_options(model_folder, precision, dtype):
    llm = opened(model_folder(), precision=precision)
    assert llm.model.dtype is dtype and llm.why_alone == ""
    [reply] = llm.answer_many([Generate(FIXED[0], choices=LABELS)])
    assert sum(reply.choices.values()) == pytest.approx(1)


class Asking:
    """A tiny method: it asks for a reply, shows it in its next prompt and has itself judged."""

    name = "asking"

    def check(self, sample):
        prompt = FIXED[0] + f"### Answer: {sample.response}\n"
        said = yield Generate(prompt + "### Query:", fixed=len(FIXED[0]), max_tokens=5)
        judged = yield Generate(prompt + f"### Query:{said.text}\n### Judgment:", fixed=len(FIXED[0]), choices=LABELS)
        label = Label(judged.text.strip())
        return Verdict(
            id=sample.id, task=Task.CLAIM, method=self.name, label=label, hallucinated=None, kind=None, reason=said.text,
            probability=judged.choices[judged.text],
        )  # fmt: skip


async def outcomes(llm, samples):
    return await collect(Engine(Asking(), Backends(generate=llm, batch=8), in_flight=16), samples)


def test_checks_run_through_the_engine(model_folder):
    import asyncio

    samples = [Sample(id=str(i), response=LINES[i % 5] + f" {i}") for i in range(20)]
    samples.insert(7, Sample(id="long", response="granite " * 600))
    found = asyncio.run(outcomes(opened(model_folder()), samples))
    wanted = asyncio.run(outcomes(opened(model_folder(), reuse=False), samples))
    assert [o.id for o in found] == [s.id for s in samples]
    assert isinstance(found[7], Failure) and "nothing is truncated" in found[7].reason
    for one, other in zip(found[:7] + found[8:], wanted[:7] + wanted[8:], strict=True):
        assert (one.label, one.probability) == (other.label, pytest.approx(other.probability, abs=1e-4))
        assert one.usage.calls == 2
    usage = [o.usage for o in found if isinstance(o, Verdict)]
    assert sum(u.cached_tokens for u in usage) > sum(u.prompt_tokens for u in usage) / 2


def test_missing_transformers_names_the_extra(model_folder, monkeypatch):
    folder = model_folder()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"knowhalu\[transformers\]"):
        opened(folder)
