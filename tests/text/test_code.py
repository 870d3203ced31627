"""Code of a claim: what its writer chooses is left out, and names that the documentation lacks are found."""

import pytest

from knowhalu.text.code import confirms_settings, simplify_code, unknown_names

DOCS = "`fetch(url, tries=3)` loads a page. `tries` is the number of attempts. Use `--quiet` for no output. Raises `PageError`."


@pytest.mark.parametrize(
    ("claim", "simple"),
    [
        ("page = fetch(address, tries=5)", "fetch(tries)"),
        ('fetch(url, headers={"a": 1, "b": 2})', "fetch(url, headers)"),
        ("client.fetch(url)", "fetch(url)"),
        ("Call fetch(url, tries=3).", "Call fetch(url, tries=3)."),
        ("tool --quiet --depth 3", "tool --quiet --depth"),
        ("Run tool --quiet out/log.txt now.", "Run tool --quiet now."),
        ("The page (see above) loads in 3 tries.", "The page (see above) loads in 3 tries."),
        ("The mayor (aged 50) spoke.", "The mayor (aged 50) spoke."),
    ],
)
def test_values_and_variables_of_calls_and_commands_are_left_out(claim, simple):
    assert simplify_code(claim, DOCS) == simple


@pytest.mark.parametrize(
    ("claim", "unknown"),
    [
        ("fetch(url, retries=5)", ["retries"]),
        ("fetch(url, tries=5)", []),
        ("parse(text, strict=True)", []),
        ("Add --silent for no output.", ["--silent"]),
        ("Add --quiet for no output.", []),
        ("It raises TimeoutError.", ["TimeoutError"]),
        ("It raises PageError.", []),
    ],
)
def test_only_names_of_what_the_documentation_describes_are_missed(claim, unknown):
    assert unknown_names(claim, DOCS) == unknown


def test_a_text_without_code_knows_no_names():
    assert unknown_names("Pass --force or set max_tries; it raises KeyError.", "The town has a mill and a bridge.") == []


@pytest.mark.parametrize(
    ("claim", "confirmed"),
    [
        ('{"port": 80, "workers": 4}', True),
        ("port: 80", True),
        ("timeout: 30s", True),
        ("timeout: 60s", False),
        ('{"port": 8080}', False),
        ('{"threads": 4}', False),
        ("port: 80 for everyone", False),
    ],
)
def test_settings_are_confirmed_by_the_only_value_beside_their_name(claim, confirmed):
    assert confirms_settings(claim, ["The default port is 80.", "It starts 4 workers.", "timeout = 30s"]) is confirmed
