"""The fingerprint of a run has all that decides its results and nothing else; reviser and backend pool."""

import json
from pathlib import Path

import pytest

from knowhalu.api import Checker, Reviser
from knowhalu.build import BackendPool, build_reviser, fingerprint
from knowhalu.encoder.embedder import load_embedder
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.errors import SettingsError
from knowhalu.index.build import build_index
from knowhalu.index.update import delete_documents
from knowhalu.methods.common import judgment_model
from knowhalu.profiles import load_settings
from knowhalu.types import Sample
from tests.support.indexing import WordEmbedder, records


def run(*pairs):
    return fingerprint(load_settings(pairs=pairs))


@pytest.mark.parametrize(
    "pair",
    ["llm.backend=vllm", "llm.model=m", "llm.style=chat", "llm.constrain=grammar", "llm.system=x", "llm.votes=3", "llm.seed=1",
     "llm.precision=bf16", "knowhalu.formulation=general", "knowhalu.delta1=0.5"],
)  # fmt: skip
def test_settings_that_decide_a_verdict_change_the_fingerprint(pair):
    assert run("reasoner=llm", pair) != run("reasoner=llm")


@pytest.mark.parametrize(
    "pair",
    ["llm.url=http://x/v1", "llm.api_key_env=K", "llm.concurrency=3", "llm.timeout=3", "llm.retries=1", "llm.cache=false",
     "llm.prefix_mb=8", "llm.gpu_memory=0.5", "llm.tensor_parallel=2", "engine.batch=3", "encoder.precision=fp32"],
)  # fmt: skip
def test_settings_of_speed_and_place_do_not_change_the_fingerprint(pair):
    assert run("reasoner=llm", pair) == run("reasoner=llm")


def test_fingerprint_has_the_content_of_the_verifier_and_neither_its_name_nor_its_place(tmp_path: Path):
    packaged = run("verifier=small")
    assert packaged == run() == run(f"verifier={PACKAGED_VERIFIER}") == run(f"encoder.folder={PACKAGED_VERIFIER}")
    assert run(f"verifier={tmp_path}")["verifier"] != packaged["verifier"]
    assert "small" not in packaged["settings"]


def test_fingerprint_of_an_encoder_run_ignores_the_llm():
    assert run("llm.model=m") == run()
    assert "verifier" in run() and "prompts" not in run()


def test_fingerprint_of_the_same_verifier_is_another_with_other_features(monkeypatch):
    before = run()["verifier"]
    monkeypatch.setattr(judgment_model, "FEATURES", judgment_model.FEATURES | {"another"})
    assert run()["verifier"] != before  # so that an unfinished run of a version with other features is refused


def test_fingerprint_depends_on_the_content_of_prompts(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "knowhalu").mkdir(parents=True)
        (folder / "knowhalu/judge.txt").write_text("same")
    first = run("reasoner=llm", f"llm.prompts={one}")
    assert first == run("reasoner=llm", f"llm.prompts={two}")
    assert first["prompts"] != run("reasoner=llm")["prompts"]
    (two / "knowhalu/judge.txt").write_text("other")
    assert first != run("reasoner=llm", f"llm.prompts={two}")


def test_fingerprint_has_the_seal_of_an_index_and_the_address_of_a_server(tmp_path: Path):
    embedder = WordEmbedder()
    made = build_index(records(), tmp_path / "index", embedder)
    settings = f"retrieval.index={json.dumps(str(tmp_path / 'index'))}"
    assert run(settings)["index"] == made.seal and run()["index"] == "none"
    (tmp_path / "index").rename(tmp_path / "moved")
    moved = f"retrieval.index={json.dumps(str(tmp_path / 'moved'))}"
    first = run(moved)
    assert first["index"] == made.seal
    delete_documents(["d1"], tmp_path / "moved")
    assert run(moved)["index"] not in (made.seal, "none")
    assert run("retrieval.url=http://a/search", "retrieval.mode=http") != run(
        "retrieval.url=http://b/search", "retrieval.mode=http"
    )
    assert run("retrieval.timeout=3", "retrieval.retries=9") == run()


def test_verdict_names_the_index_only_where_it_was_searched(tmp_path: Path):
    embedder = load_embedder("minilm")
    made = build_index(records(), tmp_path / "index", embedder)
    checker = Checker(load_settings(pairs=[f"retrieval.index={json.dumps(str(tmp_path / 'index'))}"]))
    sample = Sample(id="1", response="The Titanic sank in 1912.")
    assert checker.check(sample).index == made.seal
    assert Reviser(checker.settings).revise(sample).index == made.seal
    assert checker.check(sample.model_copy(update={"knowledge": ("The Titanic sank in 1912.",)})).index is None


@pytest.mark.parametrize(
    ("pairs", "checks", "revises"),
    [
        ([], True, True),
        (["method=conli"], True, True),
        (["method=halueval", "reasoner=llm"], False, True),
        (["method=trivial-length"], False, True),
        (["retrieval.index=/somewhere"], False, False),
        (["retrieval.mode=http", "retrieval.url=http://x/search"], False, False),
    ],
)
def test_needs_sources_follows_from_method_and_index(pairs, checks, revises):
    settings = load_settings(pairs=pairs)
    assert (Checker(settings).needs_sources, Reviser(settings).needs_sources) == (checks, revises)


def revising(*pairs):
    return fingerprint(load_settings(pairs=pairs), revises=True)


def test_revision_settings_change_only_the_fingerprint_of_revisions():
    assert revising("revise.rounds=5") != revising() != run()
    assert run("revise.rounds=5") == run()
    assert "revision" in revising("reasoner=llm") and "revision" not in revising()


def test_revision_prompts_change_the_fingerprint_of_llm_revisions(tmp_path: Path):
    (tmp_path / "revise").mkdir()
    (tmp_path / "revise/rewrite.txt").write_text("other")
    own = f"llm.prompts={tmp_path}"
    assert revising("reasoner=llm", own)["revision"] != revising("reasoner=llm")["revision"]
    assert revising("reasoner=llm", own)["prompts"] == revising("reasoner=llm")["prompts"]


@pytest.mark.parametrize("how", ["conli", "factored", "self-correction"])
def test_published_revision_strategies_need_an_llm(how):
    with pytest.raises(SettingsError, match=f"'{how}' writes with a language model. Use --reasoner llm"):
        build_reviser(load_settings(pairs=[f"revise.how={how}"]))
    assert build_reviser(load_settings(pairs=[f"revise.how={how}", "reasoner=llm"])).method.name == how


def test_reviser_is_built_for_both_writers():
    assert build_reviser(load_settings(pairs=["reasoner=llm"])).method.writer.name == "llm"
    assert build_reviser(load_settings()).method.writer.name == "encoder"
    with pytest.raises(SettingsError, match="unknown reasoner 'oracle'"):
        build_reviser(load_settings(pairs=["reasoner=oracle"]))


def test_pool_shares_a_backend_and_releases_it_before_making_another():
    kept, held = BackendPool(), []
    first = kept.get("llm", "a", object)
    assert kept.get("llm", "a", object) is first
    assert kept.get("encoder", "a", object) is not first
    kept.get("llm", "b", lambda: held.append(dict(kept._open)) or object())
    assert "llm" not in held[0] and "encoder" in held[0]


@pytest.mark.parametrize("mode", ["http", "qdrant"])
def test_the_password_of_a_search_server_is_not_in_the_fingerprint(mode):
    with_password, without = (run(f"retrieval.mode={mode}", f"retrieval.url=http://{user}host:1") for user in ("me:secret@", ""))
    assert with_password == without
    assert "secret" not in json.dumps(with_password)
