"""Cards of data sets: the catalog, and cards of a user's own in TOML."""

import json

import pytest
from click.testing import CliRunner

from knowhalu.cli.main import main
from knowhalu.datasets.catalog import dataset_card, dataset_cards, dataset_titles, read_card
from knowhalu.datasets.loading import load_samples, open_dataset
from knowhalu.datasets.row_reader import row_converter
from knowhalu.errors import InputError, SettingsError
from knowhalu.registry import import_object

CARD = """
about = "answers of our assistant"
task = "rag"
response = "output"
sources = ["context"]
label = "halu"
hallucinated = [1]
faithful = ["0"]
"""
ROWS = [{"output": f"Answer {i}.", "context": [f"Source {i}."], "halu": i % 2} for i in range(8)]


@pytest.fixture
def card_file(tmp_path):
    def write(text=CARD, name="my-set.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_every_card_of_the_catalog_names_functions_that_exist():
    for card in dataset_cards().values():
        for layout in card.layouts:
            assert callable(row_converter(layout)) and callable(import_object(layout.rows))


def test_titles_are_those_of_the_cards():
    assert dataset_titles() == {name: card.about for name, card in dataset_cards().items()}


def test_unknown_name_is_refused_with_the_nearest_known_one():
    with pytest.raises(SettingsError, match="unknown data set 'ragtrut'. Did you mean 'ragtruth'?"):
        dataset_card("ragtrut")


def test_user_card_maps_rows_to_samples(card_file, rows):
    source = open_dataset(dataset_card(str(card_file())), rows)
    samples = list(load_samples(source))
    assert (source.name, source.card.labels) == ("my-set", "0: faithful; 1: hallucinated")
    assert [s.label for s in samples[:2]] == ["faithful", "hallucinated"]
    assert (samples[1].response, samples[1].knowledge, samples[1].meta["set"]) == ("Answer 1.", ("Source 1.",), "my-set")


def test_row_without_a_source_field_that_the_card_names_is_refused(card_file, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("output,halu\nx,1\n")
    with pytest.raises(InputError, match="line 2, field 'context': is missing"):
        open_dataset(dataset_card(str(card_file())), path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task = ", "my-set.toml: not TOML"),
        (CARD.replace("task", "taks"), "field 'task': Field required"),
        (CARD.replace('"rag"', '"chat"'), "field 'task': Input should be 'qa', 'summary'"),
        (CARD + 'sorces = ["x"]', "field 'sorces': Extra inputs are not permitted"),
        (CARD.replace('label = "halu"', ""), "field 'layouts.0': a layout needs either response, label"),
        (CARD.replace("[1]", '["0"]'), "the label '0' is both faithful and hallucinated"),
        (CARD.replace("[1]", '["@entaild"]'), "'@entaild' names no set of labels; known: @entailed"),
        ('task = "qa"\nlayouts = []', "field 'layouts'"),
    ],
)
def test_faulty_card_is_refused_with_file_and_field(card_file, text, message):
    with pytest.raises(InputError) as caught:
        dataset_card(str(card_file(text)))
    assert "my-set.toml" in str(caught.value) and message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["load", "rows"])
def test_card_given_by_its_path_cannot_choose_the_code_to_import(card_file, rows, tmp_path, monkeypatch, field):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    cards = {"load": 'task = "rag"\nfields = ["output"]\nload = "trap:f"', "rows": CARD + 'rows = "trap:f"'}
    card = card_file(cards[field])
    with pytest.raises(InputError, match=rf"my-set.toml, field '{field}': names code to import \(trap:f\)"):
        list(load_samples(open_dataset(str(card), rows)))
    assert read_card(card, of_package=True).layouts


def test_missing_card_is_refused(tmp_path):
    with pytest.raises(InputError, match="no.toml: no such file"):
        dataset_card(str(tmp_path / "no.toml"))


def test_eval_takes_a_card_in_place_of_a_name(card_file, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["eval", str(card_file()), "--data", str(rows), "-m", "trivial-length", "-o", "out"])
    assert result.exit_code == 0, result.output
    assert "my-set: 8 rows, 4 hallucinated" in result.output and (tmp_path / "out/my-set/comparison.json").is_file()
