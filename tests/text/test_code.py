"""Code of a claim: what its writer chooses is left out, and names that the documentation lacks are found."""

import pytest

from knowhalu.text.code import (
    code_names,
    confirms_code,
    confirms_settings,
    is_bare_syntax,
    similar_name,
    simplify_code,
    unknown_names,
)

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


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("page = fetch(address, tries=5)", ["fetch", "tries"]),
        ("client.fetch(url, tries=count(3))", ["fetch", "count", "tries"]),
        ("- cron: '0 2 * * *'", ["cron"]),
        ("tool --quiet run", ["--quiet"]),
        ("def fetch_all(addresses):", []),
        ("# fetch(url) loads it", []),
        ("Note: the page is loaded twice", []),
    ],
)
def test_a_line_takes_the_names_of_functions_parameters_options_and_keys_from_a_library(line, names):
    assert code_names(line, is_line=True) == names


@pytest.mark.parametrize(
    "text", ["Fetch the page (twice).", "Breakfast: included", "Use fetch and tries.", "Run it (see below)."]
)
def test_prose_has_no_names_of_code(text):
    assert code_names(text, is_line=False) == []


def test_a_sentence_that_tells_to_run_a_call_has_its_names():
    assert code_names('Run fetch("a", tries=2).', is_line=False) == ["fetch", "tries"]


@pytest.mark.parametrize(
    ("line", "confirmed"),
    [
        ("fetch(address, tries=5)", True),
        ("fetch(address, retries=5)", False),
        ("fetch(address, cache=None)", False),
        ("fetch(address, cache=True)", True),
        ("port: 90", False),
        ("cron: '0 2'", True),
    ],
)
def test_code_is_confirmed_by_its_names_unless_the_source_gives_them_other_values(line, confirmed):
    sources = [DOCS, "With cache=True pages are kept.", "The port is 80.", "Add a cron line."]
    assert confirms_code(line, code_names(line, is_line=True), sources) is confirmed


@pytest.mark.parametrize(
    ("line", "bare"), [("}", True), ("on:", True), ("i += 1", True), ("pages:", False), ("# loads it", False)]
)
def test_a_line_without_names_has_nothing_to_check(line, bare):
    assert is_bare_syntax(line) is bare


@pytest.mark.parametrize(("name", "similar"), [("retries", "tries"), ("--quite", "--quiet"), ("depth", None)])
def test_a_name_is_taken_for_a_similar_one_of_the_source(name, similar):
    assert similar_name(name, DOCS) == similar
