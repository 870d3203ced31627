"""The fingerprint of a run: what decides its results is in it, and nothing else."""

from pathlib import Path

import pytest

from knowhalu.parts import Kept, fingerprint
from knowhalu.settings import load_settings


def run(*pairs):
    return fingerprint(load_settings(pairs=pairs))


@pytest.mark.parametrize(
    "pair",
    ["llm.backend=vllm", "llm.model=m", "llm.style=chat", "llm.constrain=grammar", "llm.system=x", "llm.votes=3", "llm.seed=1",
     "llm.precision=bf16", "knowhalu.formulation=general", "knowhalu.delta1=0.5"],
)  # fmt: skip
def test_what_decides_an_llms_verdict_changes_the_fingerprint(pair):
    assert run("reasoner=llm", pair) != run("reasoner=llm")


@pytest.mark.parametrize(
    "pair",
    ["llm.url=http://x/v1", "llm.api_key_env=K", "llm.concurrency=3", "llm.timeout=3", "llm.retries=1", "llm.cache=false",
     "llm.prefix_mb=8", "llm.gpu_memory=0.5", "llm.tensor_parallel=2", "engine.batch=3", "encoder.precision=fp32"],
)  # fmt: skip
def test_speed_and_place_do_not(pair):
    assert run("reasoner=llm", pair) == run("reasoner=llm")


def test_an_encoders_run_does_not_depend_on_the_llm():
    assert run("llm.model=m") == run()
    assert "verifier" in run() and "prompts" not in run()


def test_prompts_count_by_their_content(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "knowhalu").mkdir(parents=True)
        (folder / "knowhalu/judge.txt").write_text("same")
    first = run("reasoner=llm", f"llm.prompts={one}")
    assert first == run("reasoner=llm", f"llm.prompts={two}")
    assert first["prompts"] != run("reasoner=llm")["prompts"]
    (two / "knowhalu/judge.txt").write_text("other")
    assert first != run("reasoner=llm", f"llm.prompts={two}")


def test_engines_in_turn_share_a_backend_and_one_of_other_options_is_let_go_before_the_next_is_made():
    kept, held = Kept(), []
    first = kept.get("llm", "a", object)
    assert kept.get("llm", "a", object) is first
    assert kept.get("encoder", "a", object) is not first
    kept.get("llm", "b", lambda: held.append(dict(kept._held)) or object())
    assert "llm" not in held[0] and "encoder" in held[0]
