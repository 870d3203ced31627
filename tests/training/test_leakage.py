"""Leakage: no text of an evaluation file is trained on."""

import gzip
import json

import pytest

from knowhalu.errors import InputError
from knowhalu.training.data_files import Leakage
from knowhalu.training.recipes import RECIPES, read_recipe_rows

TEXT = "The long bridge over the wide river was opened by the old queen in the wet spring of 1887, and it stood for ninety years."
OTHER = "Nobody knows when the first stone of the harbour wall was laid: the papers of the town were burnt in the great fire."
CLAIM = "The old queen opened the long bridge in the spring of 1887."


def test_a_source_that_overlaps_leaks_in_any_spelling():
    leakage = Leakage([{"source": TEXT}])
    assert {"source": TEXT} in leakage
    assert {"document": TEXT.upper().replace(",", " -")} in leakage
    assert {"text": f"{TEXT} {OTHER}"} in leakage
    assert {"source": OTHER} not in leakage
    assert leakage.left_out == (3, 0)


def test_a_source_of_any_length_with_a_whole_evaluation_text_leaks():
    filler = " ".join(f"word{i}" for i in range(400))
    assert {"source": f"{filler} {TEXT} {filler}"} in Leakage([{"source": TEXT}, {"source": OTHER}])
    half = " ".join(TEXT.split()[:12])
    assert {"source": f"{filler} {half} {filler}"} not in Leakage([{"source": TEXT}, {"source": OTHER}])


def test_one_shared_phrase_is_no_leak():
    leakage = Leakage([{"document": TEXT}])
    assert {"source": OTHER + " The long bridge over the wide river was opened by someone."} not in leakage


def test_a_short_source_leaks_only_if_it_is_the_same():
    leakage = Leakage([{"knowledge": "Rome is old."}, {"knowledge": "Рим очень стар"}])
    assert {"source": "rome, is old"} in leakage
    assert {"source": "Рим очень стар."} in leakage
    assert {"source": "Рим очень нов."} not in leakage
    assert {"source": "Rome is new."} not in leakage


@pytest.mark.parametrize(
    ("row", "leaks"),
    [
        ({"source": OTHER, "claim": CLAIM}, True),
        ({"source": OTHER, "claim": "The old queen opened the long bridge in the spring of 1888."}, True),
        ({"document": OTHER, "claims": [{"text": "Rome is old."}, {"text": CLAIM}]}, True),
        ({"document": OTHER, "right_summary": "A bridge was opened.", "hallucinated_summary": CLAIM}, True),
        ({"source": OTHER, "claim": "The old king closed the long bridge before the autumn of 1887."}, False),
        ({"source": OTHER, "claim": "Yes"}, False),
    ],
)
def test_a_claim_that_is_nearly_that_of_an_evaluation_file_leaks(row, leaks):
    assert (row in Leakage([{"source": TEXT, "claim": CLAIM}, {"source": TEXT, "claim": "Yes"}])) is leaks


@pytest.mark.parametrize(
    "row",
    [
        {"premise": TEXT, "hypothesis": "A bridge."}, {"evidence": [{"sentence": TEXT}]}, {"documents": [{"text": TEXT}]},
        {"context": TEXT, "output": "A bridge."}, {"prompt": "Sum up.", "messages": [{"content": TEXT}]},
    ],
)  # fmt: skip
def test_an_evaluation_row_of_any_form_is_checked_against(row):
    assert {"source": TEXT} in Leakage([row])
    assert {"source": OTHER} not in Leakage([row])


@pytest.mark.parametrize("name", ["b.csv", "b.json", "b.txt", "below/b.parquet"])
def test_evaluation_files_of_another_format_are_refused(name, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"source": TEXT}))
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("source,claim\n")
    with pytest.raises(InputError, match=rf"{name}: .* convert the file to JSON lines"):
        Leakage.of_folder(tmp_path)


def test_evaluation_files_in_subfolders_are_checked(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/a.jsonl").write_text(json.dumps({"source": TEXT}))
    (tmp_path / "README.md").write_text("Where the rows come from.")
    assert {"source": TEXT} in Leakage.of_folder(tmp_path)


def test_leaking_rows_are_left_out_of_a_recipe(data, tmp_path):
    recipe = next(r for r in RECIPES if r.name == "Wikipedia, own sentences")
    rows = list(read_recipe_rows(recipe, data, held=False))
    with gzip.open(tmp_path / "eval.jsonl.gz", "wt") as file:
        file.write(json.dumps({"source": rows[3]["text"]}) + "\n")
    kept = list(read_recipe_rows(recipe, data, held=False, leakage=Leakage.of_folder(tmp_path)))
    assert rows[3] not in kept
    assert 0 < len(kept) < len(rows)


def test_an_empty_evaluation_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no .jsonl"):
        Leakage.of_folder(tmp_path)
