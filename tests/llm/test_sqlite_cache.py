"""The SQLite file of the reply cache: its limit, damaged and foreign files, and concurrent processes."""

import json
import multiprocessing
import sqlite3

import pytest

from knowhalu.errors import BackendError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.reply_cache import ReplyCache, SQLiteCache, default_cache_folder, with_reply_cache
from knowhalu.requests import Completion, Generate
from tests.support.memory_models import REPLY, REQUEST, Model, ask, write_many


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_folder() == tmp_path / "knowhalu"
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert default_cache_folder() == tmp_path / "home" / ".cache" / "knowhalu"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_least_recently_used_is_dropped_first(tmp_path):
    clock = Clock()
    shelf = SQLiteCache(tmp_path / "r.sqlite", 2**20, clock)
    keys = [f"{n:032}".encode() for n in range(400)]
    for n, key in enumerate(keys):
        clock.now = n * 1000.0
        shelf.put(key, f"{n} " + "x" * 8000)
        assert shelf.get(keys[0]) is not None, n  # used all the time
        assert shelf._size() <= 2**20
    kept = [n for n, key in enumerate(keys) if shelf.get(key) is not None]
    assert kept[0] == 0
    assert kept[1:] == list(range(400 - len(kept) + 1, 400))
    assert 60 < len(kept) < 130
    shelf.close()
    assert (tmp_path / "r.sqlite").stat().st_size < 3 * 2**20


def test_the_replies_of_100_000_rows_fit_under_the_default_limit(tmp_path):
    """A row makes about sixteen requests; few replies are as long as these."""
    options, count = LLMOptions(), 2000
    cache = ReplyCache(SQLiteCache(tmp_path / "r.sqlite", 2**30), options)
    reply = Completion("The capital of Austria is Vienna. " * 12, "stop", {}, (-0.123456789012345,) * 100, 2900, 2700, 100)
    for number in range(count):
        cache.put(cache.key("", Generate(f"{number}")), reply)
    assert cache.store._size() / count * 16 * 100_000 < options.cache_mb * 2**20


def test_a_text_over_the_limit_is_stored_alone(tmp_path):
    shelf = SQLiteCache(tmp_path / "r.sqlite", 2**16)
    for name in (b"a", b"b"):
        shelf.put(name, "x" * 2**18)
    assert [shelf.get(k) is not None for k in (b"a", b"b")] == [False, True]
    shelf.close()


def test_a_changed_text_counts_as_absent(tmp_path, options):
    model = Model()
    ask(model, options, REQUEST)
    path = options.cache_folder / "replies.sqlite"
    base = sqlite3.connect(path)
    base.execute("UPDATE texts SET text = replace(text, '0.25', '0.95')")
    base.commit()
    base.close()
    assert ask(model, options, REQUEST) == [REPLY]
    assert ask(model, options, REQUEST)[0].reused


@pytest.mark.parametrize("text", ["{}", "[]", "null", "7", json.dumps({"text": "x", "logprobs": [], "odd": 1}), "no json"])
def test_an_entry_that_is_not_a_reply_counts_as_absent(options, text):
    model = Model()
    backend = with_reply_cache(model, options)
    backend.cache.store.put(backend.cache.key("m", REQUEST), text)
    assert backend.answer_many([REQUEST]) == [REPLY]


@pytest.mark.parametrize("damage", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_named_with_the_remedy(options, damage):
    path = options.cache_folder / "replies.sqlite"
    path.parent.mkdir()
    path.write_bytes(damage)
    with pytest.raises(SettingsError, match=r"replies\.sqlite: the reply cache cannot be read .* Delete the file"):
        with_reply_cache(Model(), options)
    assert path.read_bytes() == damage


def test_another_programs_database_is_not_changed(options):
    path = options.cache_folder / "replies.sqlite"
    path.parent.mkdir()
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE theirs (x)")
    base.commit()
    with pytest.raises(SettingsError, match="not a reply cache of KnowHalu"):
        with_reply_cache(Model(), options)
    base.execute("PRAGMA application_id = 0x4B48524C")
    base.execute("PRAGMA user_version = 99")
    base.commit()
    base.close()
    with pytest.raises(SettingsError, match="of another version of KnowHalu"):
        with_reply_cache(Model(), options)


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be opened"):
        with_reply_cache(Model(), LLMOptions(cache_folder=tmp_path / "file" / "cache"))


def test_a_cache_that_fails_during_a_check_is_a_failure_with_the_remedy(options):
    backend = with_reply_cache(Model(), options)
    backend.cache.store._connection.execute("DROP TABLE texts")
    with pytest.raises(BackendError, match="the reply cache failed .* Delete the file"):
        backend.answer_many([REQUEST])


def test_concurrent_processes_store_every_reply(options):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    workers = [context.Process(target=write_many, args=(options.cache_folder, start, barrier)) for start in (0, 20, 40)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [w.exitcode for w in workers] == [0, 0, 0]
    model = Model()
    replies = ask(model, options, *(Generate(f"prompt {n}") for n in range(60)))
    assert [r.text for r in replies] == [f"prompt {n}"[::-1] for n in range(60)]
    assert model.asked == []
