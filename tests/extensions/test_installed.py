"""Extensions of an installed package: found by name, configured by their branch of the settings, and checked by contract."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from knowhalu.api import Checker
from knowhalu.build import build_method, fingerprint
from knowhalu.datasets.catalog import dataset_card
from knowhalu.encoder.models import verifier_folder
from knowhalu.encoder.options import EncoderOptions
from knowhalu.engine.engine import Backends, Engine
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import SettingsError
from knowhalu.profiles import load_settings
from knowhalu.registry import known_names
from knowhalu.requests import Search
from knowhalu.testing import ScriptedEncoder, check_llm, check_method, check_retriever
from knowhalu.types import Sample

pytestmark = pytest.mark.usefixtures("installed")
METHOD = "knowhalu_example.one_shot:OneShot"
SERVER = "knowhalu_example.plain_server:PlainServer"
RETRIEVER = "knowhalu_example.glossary:Glossary"
TERMS = {"granite": "Granite is a coarse-grained rock.", "basalt": "Basalt is a dark rock."}
SAMPLE = Sample(id="1", response="Granite is a rock.", knowledge="Granite is a coarse-grained rock.")


def outcome_of(method):
    engine = Engine(method, Backends(entail=ScriptedEncoder(lambda pair: (0.6, 0.1, 0.3))))
    return next(iter(engine.run([SAMPLE])))


@pytest.mark.parametrize("name", ["one-shot", METHOD])
def test_method_has_its_options_by_name_and_by_import_path(name):
    pair = f"method={json.dumps(name)}"
    assert outcome_of(build_method(load_settings(pairs=[pair]))).hallucinated is False
    strict = load_settings(pairs=["one-shot.threshold=0.7", pair])
    assert outcome_of(build_method(strict)).hallucinated is True
    assert fingerprint(strict)["settings"] != fingerprint(load_settings(pairs=[pair]))["settings"]
    assert "one-shot" in json.loads(fingerprint(strict)["settings"])


def test_method_checks_a_text_on_the_command_line(knowhalu):
    result = knowhalu("check", "-m", "one-shot", "--claim", "Mars is red.", "--knowledge", "Mars is red.", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["method"] == "one-shot"


def test_methods_command_lists_an_extension_with_its_options(knowhalu):
    assert "\none-shot " in knowhalu("methods").stdout
    described = knowhalu("methods", "one-shot").stdout
    assert "the whole text against the whole source" in described and "threshold = 0.5" in described


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["one-shot.treshold=0.7"], r"one-shot.treshold: no such setting"),
        (["one-shot.threshold=7"], r"one-shot.threshold: Input should be less than or equal to 1"),
        (["two-shot.threshold=0.7"], r"two-shot: no such setting"),
        (["method=one-shto", "llm.seed=1"], r"Did you mean 'one-shot'"),
        (["retrieval.mode=glosary"], r"retrieval.mode: .*the name of an installed retriever"),
    ],
)
def test_misspelt_names_are_refused(pairs, message):
    with pytest.raises(SettingsError, match=message):
        build_method(load_settings(pairs=pairs))


def test_options_in_a_settings_file_survive_a_dump(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('method = "one-shot"\n[one-shot]\nthreshold = 0.25\n')
    settings = load_settings(file)
    assert settings.model_dump(mode="json")["one-shot"] == {"threshold": 0.25}
    assert type(settings).model_validate_json(settings.model_dump_json()) == settings


def test_fingerprint_has_only_the_extensions_in_use():
    settings = load_settings(pairs=["one-shot.threshold=0.7"])
    assert fingerprint(settings) == fingerprint(load_settings())
    assert "extensions" not in fingerprint(settings)
    used = fingerprint(settings.model_copy(update={"method": "one-shot"}))
    assert used["extensions"].startswith("knowhalu-example 1.0 ")


def test_method_keeps_its_contract():
    check_method(build_method(load_settings(pairs=["method=one-shot"])))


class Continue(BaseHTTPRequestHandler):
    """Continue every text with the first choice, or with a sentence."""

    def do_POST(self):
        requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps([self.reply(**r) for r in requests]).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def reply(self, choices, stop, max_tokens, **_):
        if choices:
            return {"text": choices[0], "choices": {c: float(c == choices[0]) for c in choices}, "completion_tokens": 1}
        words = "The sea is deep and wide.".split()[:max_tokens]
        text = " ".join(words)
        for end in stop:
            text = text.partition(end)[0]
        return {"text": text, "completion_tokens": len(words)}

    def log_message(self, *_):
        pass


@pytest.fixture
def server_url():
    with HTTPServer(("127.0.0.1", 0), Continue) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["plain-server", SERVER])
def test_llm_backend_answers_a_built_in_method(name, server_url, tmp_path):
    pairs = [
        "method=halueval-knowledge", "reasoner=llm", f"llm.backend={json.dumps(name)}", "llm.model=sea",
        f"plain-server.url={server_url}", f"llm.cache_folder={json.dumps(str(tmp_path))}",
    ]  # fmt: skip
    checker = Checker(load_settings(pairs=pairs))
    first, again = checker.check(SAMPLE), checker.check(SAMPLE)
    assert first.label and first.usage.calls == 1
    assert again.usage.reused == 1
    assert checker.llm_identity.startswith("sea ")


def test_llm_backend_without_its_server_is_a_failure_that_names_it():
    settings = load_settings(pairs=["method=halueval-knowledge", "reasoner=llm", "llm.backend=plain-server", "llm.cache=false"])
    url = "http://127.0.0.1:1"
    outcome = Checker(settings.model_copy(update={"plain-server": {"url": url}} | _own("plain-server", url))).check(SAMPLE)
    assert url in outcome.reason and "Is the server up?" in outcome.reason


def _own(name, url):
    return {name: load_settings(pairs=[f"{name}.url={url}"]).model_extra[name]}


def test_llm_backend_keeps_its_contract(server_url):
    from knowhalu_example.plain_server import PlainServer

    check_llm(PlainServer(PlainServer.Options(url=server_url)))


@pytest.mark.parametrize("name", ["glossary", RETRIEVER])
def test_retriever_answers_searches_by_name_and_by_import_path(name, tmp_path):
    (tmp_path / "terms.json").write_text(json.dumps(TERMS))
    settings = load_settings(pairs=[f"retrieval.mode={json.dumps(name)}", f"glossary.file={tmp_path / 'terms.json'}"])
    searcher = SearchBackend(settings.retrieval, settings.model_extra["glossary"])
    ((passages,),) = searcher.answer_many([Search(("What is granite?",), 2)])
    assert [p.text for p in passages] == [TERMS["granite"]]
    assert fingerprint(settings)["index"] == "none"


def test_retriever_finds_the_source_of_a_text_without_one(knowhalu, tmp_path):
    (tmp_path / "glossary.json").write_text(json.dumps(TERMS))
    result = knowhalu("check", "--claim", "Granite is a coarse-grained rock.", "--set", "retrieval.mode=glossary", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["label"] == "CORRECT"


def test_retriever_keeps_its_contract(tmp_path):
    from knowhalu_example.glossary import Glossary

    (tmp_path / "terms.json").write_text(json.dumps(TERMS))
    check_retriever(Glossary(Glossary.Options(file=tmp_path / "terms.json")), "granite and basalt")


@pytest.mark.parametrize("name", ["my-set", "knowhalu_example/my-set.toml", "knowhalu_example:MY_SET"])
def test_dataset_is_evaluated_by_name_by_file_and_by_import_path(name, installed, knowhalu, tmp_path):
    rows = [{"id": str(i), "output": f"Granite is rock {i}.", "context": "Granite is rock 1.", "halu": i % 2} for i in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    card = installed / name if name.endswith(".toml") else name
    result = knowhalu("eval", card, "--data", "rows.jsonl", "-m", "trivial-length", "-o", "runs")
    assert result.exit_code == 0, result.output
    assert "20 rows" in " ".join(result.output.split())


def test_dataset_and_verifier_are_files_of_the_package(installed):
    assert known_names("datasets") == ["my-set"]
    assert dataset_card("my-set").about == "Answers of our support desk, labelled by its staff."
    assert verifier_folder(EncoderOptions(verifier="my-verifier")) == installed / "knowhalu_example" / "my-verifier"
