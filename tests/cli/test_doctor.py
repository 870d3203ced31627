"""`knowhalu doctor` and `knowhalu settings`."""

import socket
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from knowhalu.cli.catalog import render_settings
from knowhalu.cli.doctor import VERIFIER_FILES, examine_installation
from knowhalu.encoder.models import MODELS
from knowhalu.index.build import build_index
from knowhalu.llm.options import LLMOptions
from knowhalu.profiles import load_settings
from knowhalu.settings import Settings
from tests.support.fake_server import FakeServer, running
from tests.support.hanging import HANG
from tests.support.indexing import WordEmbedder, records
from tests.support.server_faults import never


@pytest.fixture
def verifier(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "verifier"
    folder.mkdir()
    for name in VERIFIER_FILES:
        (folder / name).write_bytes(b"x")
    monkeypatch.setitem(MODELS, "small", replace(MODELS["small"], shipped=folder))
    return folder


def test_doctor_passes_where_nothing_is_missing(knowhalu, verifier):
    result = knowhalu("doctor")
    assert result.exit_code == 0, result.output
    assert "sha256 2d711642b726" in result.stdout
    assert "knowhalu index build" in result.stdout


def test_a_missing_verifier_fails_with_a_remedy(knowhalu, verifier):
    (verifier / "model.safetensors").unlink()
    result = knowhalu("doctor")
    assert result.exit_code == 1
    assert "MISS verifier" in result.stdout
    assert "model.safetensors missing" in result.stdout
    assert "train_verifier.py" in result.stdout


def test_the_verifier_of_the_settings_is_shown(knowhalu, verifier, tmp_path):
    assert f"verifier       small: {verifier} (" in knowhalu("doctor").stdout
    assert f"verifier       {verifier} (" in knowhalu("doctor", "--set", f"verifier={verifier}").stdout
    result = knowhalu("doctor", "--set", "verifier=none")
    assert result.exit_code == 1 and "MISS verifier       none: there is no such verifier" in result.stdout


def test_a_damaged_index_fails_only_where_the_settings_name_it(knowhalu, verifier, tmp_path):
    folder = tmp_path / "indexes" / "mine"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    assert knowhalu("doctor").exit_code == 0
    result = knowhalu("doctor", "--set", "retrieval.index=indexes/mine")
    assert result.exit_code == 1
    assert "MISS index" in result.stdout


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr("knowhalu.cli.doctor._version", lambda name: None if name in ("rich", "vllm") else "1.0")
    monkeypatch.setattr("knowhalu.cli.doctor._extras", lambda: {"vllm": ["vllm"], "ray": ["ray"]})
    found = {f.name: f for f in examine_installation(Settings())}
    assert (found["rich"].good, "pip install rich" in found["rich"].text) == (False, True)
    assert (found["[vllm]"].good, found["[ray]"].good) == (None, True)
    assert "pip install 'knowhalu[vllm]'" in found["[vllm]"].text


@pytest.mark.parametrize(("pairs", "name", "said"), [
    (["method=nonsense"], "method", "unknown method 'nonsense'"),
    (["method=halueval", "reasoner=encoder"], "method", "Use --reasoner llm"),
    (["reasoner=llm", "llm.backend=nonsense"], "llm.model", "unknown LLM backend 'nonsense'"),
    (["reasoner=llm", "llm.backend=vllm"], "llm.model", "Set it to the folder of a model"),
    (["reasoner=llm", "llm.backend=transformers", "llm.model=none"], "llm.model", "none: no such folder"),
    (["method=cascade", "reasoner=llm", "llm.backend=vllm"], "llm.model", "set llm.model"),
    (["retrieval.mode=late", "retrieval.token_encoder=none"], "token encoder", "none: there is no such folder"),
    (["retrieval.index=none", "retrieval.reranker=none"], "reranker", "none: there is no such folder"),
])  # fmt: skip
def test_missing_parts_of_a_run_are_reported(pairs, name, said):
    found = {f.name: f for f in examine_installation(load_settings(pairs=pairs))}
    assert found[name].good is False and said in found[name].text


def test_an_in_process_model_needs_its_folder_and_its_package(tmp_path, monkeypatch):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(b"{}")
    settings = Settings(reasoner="llm", llm=LLMOptions(backend="vllm", model=str(tmp_path)))
    for version, good in ((None, False), ("0.32", True)):
        monkeypatch.setattr("knowhalu.cli.doctor._version", lambda _, version=version: version)
        found = {f.name: f for f in examine_installation(settings)}["llm.model"]
        assert found.good is good and ("pip install 'knowhalu[vllm]'" in found.text) is not good


def test_parts_that_no_run_needs_are_not_reported():
    names = {
        f.name
        for f in examine_installation(load_settings(pairs=["method=trivial-length", "reasoner=llm", "retrieval.reranker=none"]))
    }
    assert not names & {"llm.url", "llm.model", "reranker"}


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch):
    monkeypatch.setattr("knowhalu.cli.doctor.SERVER_SECONDS", HANG)


def ask_server(url, **llm):
    settings = Settings(reasoner="llm", llm=LLMOptions(url=url, **llm))
    (found,) = [f for f in examine_installation(settings) if f.name == "llm.url"]
    return found


def test_the_server_is_queried_only_for_the_llm_reasoner():
    assert "llm.url" not in {f.name for f in examine_installation(Settings())}
    assert "llm.url" not in {
        f.name for f in examine_installation(Settings(reasoner="llm", llm=LLMOptions(backend="transformers")))
    }


@pytest.mark.parametrize(("kind", "name"), [("vllm", "vLLM"), ("llamacpp", "llama.cpp"), ("plain", "an unknown server")])
def test_a_server_that_answers_is_described(kind, name):
    with running(FakeServer(kind=kind)) as server:
        found = ask_server(server.url)
    assert (found.good, found.text) == (True, f"{server.url} is {name} with tiny; tiny is used")


def test_passwords_of_servers_are_not_printed(monkeypatch):
    with running(FakeServer()) as server:
        found = ask_server(server.url.replace("://", "://me:secret@"))
        assert (found.good, found.text.partition(" ")[0]) == (True, server.url)
        server.strike("", never, forever=True)
        with monkeypatch.context() as patch:
            patch.setattr("knowhalu.cli.doctor.SERVER_SECONDS", 0.2)
            silent = ask_server(server.url.replace("://", "://me:secret@"))
    assert "no reply" in silent.text and "secret" not in silent.text
    options = ["retrieval.mode=http", "retrieval.url=http://me:secret@host"]
    assert not [f for f in examine_installation(load_settings(pairs=options)) if "secret" in f.text]


def test_a_model_missing_from_the_servers_list_is_reported():
    with running(FakeServer(names=["tiny", "small"])) as server:
        found, unsaid = ask_server(server.url, model="large"), ask_server(server.url)
    assert (found.good, "'large' is not in its list" in found.text) == (None, True)
    assert (unsaid.good, "Set llm.model" in unsaid.text) == (False, True)


def test_an_unusable_server_is_reported_with_a_remedy(monkeypatch):
    with socket.socket() as taken, running(FakeServer()) as server:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        down = ask_server(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        assert "usually ends in /v1" in ask_server(server.url.removesuffix("/v1")).text
        server.strike("", never, forever=True)
        with monkeypatch.context() as patch:
            patch.setattr("knowhalu.cli.doctor.SERVER_SECONDS", 0.2)
            silent = ask_server(server.url)
    assert (silent.good, "no reply within 0.2 s" in silent.text) == (False, True)
    assert (down.good, "knowhalu serve-model" in down.text) == (False, True)
    assert all("http://HOST:PORT/v1" in ask_server(url).text for url in ("nowhere", "localhost:8000/v1"))


def test_the_printed_settings_read_back_to_the_same_tree(tmp_path):
    file = tmp_path / "knowhalu.toml"
    for pairs in ((), ("knowhalu.delta1=0.3", "retrieval.index=a b", "engine.ordered=false", 'encoder.verifier="C:\\\\x"')):
        tree = load_settings(pairs=pairs)
        file.write_text(render_settings(tree), encoding="utf-8")
        assert load_settings(file) == tree


def test_every_setting_is_printed_with_its_description():
    text = render_settings(Settings())
    for group in (Settings(), *(g for g in dict(Settings()).values() if hasattr(g, "model_fields_set"))):
        for name, field in type(group).model_fields.items():
            assert name in text
            assert (field.description or "") in text
    assert tomllib.loads(text)["engine"]["batch"] == 64


def test_an_index_of_one_document_is_counted_in_the_singular(tmp_path, monkeypatch):
    build_index(records({"only": "It is one sentence."}), tmp_path / "index", WordEmbedder())
    settings = load_settings(pairs=[f"retrieval.index={tmp_path / 'index'}"])
    (found,) = [f for f in examine_installation(settings) if f.name == "index" and str(tmp_path) in f.text]
    assert "(1 passage of 1 document, embedder " in found.text


def test_each_of_several_servers_is_reported_and_that_their_models_differ():
    with running(FakeServer()) as one, running(FakeServer(root="/other")) as two:
        settings = Settings(reasoner="llm", llm=LLMOptions(url=[one.url, two.url, "http://127.0.0.1:9/v1"]))
        lines = [line for line in examine_installation(settings) if line.name == "llm.url"]
        assert [line.good for line in lines] == [True, True, False]
        both = settings.model_copy(update={"llm": LLMOptions(url=[one.url, two.url])})
        lines = [line for line in examine_installation(both) if line.name == "llm.url"]
    assert [line.good for line in lines] == [True, True, False]
    assert "must serve the same model" in lines[-1].text
