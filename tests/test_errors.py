"""The error classes and their documented tree."""

import inspect
import re

import pytest

from knowhalu import errors


def classes():
    return {n: c for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, Exception)}


def drawn():
    """Read the drawn tree into {class: parent}."""
    parents, path = {}, []
    for line in errors.__doc__.splitlines():
        if match := re.match(r"([│ ├└─]*)([A-Z]\w+)\b", line):
            depth = len(match[1]) // 4
            if match[1] or match[2].endswith("Error") and len(line.split()) == 1:
                path[depth:] = [match[2]]
                parents[match[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_docstring_shows_the_class_tree():
    assert drawn() == {name: c.__base__.__name__ for name, c in classes().items()}


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_error_is_documented_and_in_the_tree(name):
    found = classes()[name]
    assert found.__doc__
    assert issubclass(found, errors.KnowHaluError)
    assert isinstance(found.retryable, bool)


def test_stage_errors_keep_stage_reason_and_reply():
    error = errors.ReplyError("judge", "no label in the reply", reply="hm")
    assert (error.stage, error.reason, error.reply, str(error)) == (
        "judge",
        "no label in the reply",
        "hm",
        "judge: no label in the reply",
    )
    assert not error.retryable
    assert errors.BackendError("search", "down").retryable


def test_a_missing_extra_names_its_command():
    assert str(errors.MissingExtra("pyarrow", "parquet")) == "pyarrow is not installed. Run: pip install 'knowhalu[parquet]'"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("http://me:secret@host:1/search?q=1", "http://host:1/search?q=1"),
        ("https://token@host", "https://host"),
        ("http://me:pass@word@host", "http://host"),
        ("me:secret@host:8893", "host:8893"),
        ("--set retrieval.url=me:secret@host", "--set retrieval.url=host"),
        ('{"url":"me:secret@host","x":"http://me:secret@host"}', '{"url":"host","x":"http://host"}'),
        ("cannot open http://me:secret@a, nor http://b", "cannot open http://a, nor http://b"),
        ("http://host/users/@me", "http://host/users/@me"),
        ("write to me@example.org: it is free", "write to me@example.org: it is free"),
        ("", ""),
    ],
)
def test_passwords_in_urls_are_hidden(given, shown):
    assert errors.hide_password(given) == shown


def test_counts_have_their_noun_in_the_right_number():
    assert [errors.counted(n, "row") for n in (0, 1, 2, 1000)] == ["0 rows", "1 row", "2 rows", "1,000 rows"]
