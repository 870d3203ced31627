"""The commands that extend, search and serve an index, as a user types them."""

import json
import threading

import click
import pytest
from click.testing import CliRunner

from knowhalu.cli.index import index
from knowhalu.errors import SettingsError
from knowhalu.index.build import build_index
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval import server as server_module
from knowhalu.retrieval.http import HttpRetriever
from knowhalu.text.sentences import sanitize
from tests.support.indexing import FACTS, WordEmbedder
from tests.support.searching import WordVectors


def run(*arguments):
    done = CliRunner().invoke(index, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def tokens(monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name, **options: WordVectors())


def test_extend_then_search_by_words_and_tokens(folder, tokens):
    assert "passages read: 12" in run("extend", folder, "--lexical", "--late")
    assert run("extend", folder, "--lexical", "--late").count("up to date") == 2
    for mode in ("lexical", "late"):
        (line,) = run("search", folder, "Which ship hit an iceberg?", "--mode", mode, "-k", 1, "--json").splitlines()
        assert json.loads(line)["passages"][0]["title"] == "Titanic"
    assert "intact" in run("verify", folder)


def test_search_removes_terminal_control_characters(tmp_path):
    record = SourceRecord("\x1b[2J", "\x9b31m", "A ship\x1b]0;owned\x07 sank \u202ekcab.", "")
    build_index([record], tmp_path / "index", WordEmbedder())
    run("extend", tmp_path / "index", "--lexical")
    said = run("search", tmp_path / "index", "ship\x1b", "--mode", "lexical")
    assert "sank" in said and sanitize(said) == said


@pytest.mark.parametrize(("option", "value"), [("--rerank", "5000"), ("--lexical-weight", "nan")])
def test_an_invalid_value_is_reported_with_its_option(folder, option, value):
    with pytest.raises(SettingsError, match=f"{option} {value}: input should be"):
        run("search", folder, "ship", "--mode", "lexical", option, value)


def test_extend_without_a_part_is_refused(folder):
    done = CliRunner().invoke(index, ["extend", str(folder)])
    assert done.exit_code == click.UsageError.exit_code and "--lexical, --late, or both" in done.output


def test_serve_answers_searches_until_it_is_stopped(folder, monkeypatch):
    run("extend", folder, "--lexical")
    found = []

    def served(self):
        thread = threading.Thread(target=self.__class__.__mro__[1].serve_forever, args=(self,), daemon=True)
        thread.start()
        found.extend(HttpRetriever(self.url).search(["iceberg"], 1)[0])
        self.shutdown()
        thread.join()

    monkeypatch.setattr(server_module.SearchServer, "serve_forever", served)
    said = run("serve", folder, "--mode", "lexical", "--port", 0)
    assert "12 passages (lexical) at http://127.0.0.1:" in said
    assert [p.text for p in found] == [FACTS["Titanic"]]


def test_a_change_updates_bm25_and_reports_the_outdated_late_part(folder, tokens, tmp_path, monkeypatch):
    monkeypatch.setattr("knowhalu.cli.index.load_index_embedder", lambda *given, **options: WordEmbedder())
    run("extend", folder, "--lexical", "--late")
    shown = run("info", folder)
    assert "lexical    up to date" in shown and "late       up to date" in shown and "words 16" in shown
    (tmp_path / "new.txt").write_text("The Lusitania was a ship that a submarine sank in 1915.")
    said = run("add", folder, tmp_path / "new.txt")
    assert f"{folder / 'lexical'}: up to date" in said and f"knowhalu index extend {folder} --late" in said
    assert "new.txt" in run("search", folder, "Lusitania", "--mode", "lexical")
    assert "covers 12 of 13 stored passages and cannot be searched" in run("info", folder)
    assert [part["covered"] for part in json.loads(run("info", folder, "--json"))["parts"]] == [13, 12]
    assert "passages read: 1, up to date" in run("extend", folder, "--late") and "intact" in run("verify", folder)
    assert "Lusitania" not in run("delete", folder, "new.txt")
    assert "new.txt" not in run("search", folder, "Lusitania", "--mode", "late")
