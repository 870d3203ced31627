"""Loading data sets: splits, folders, ids, recognition of files, and hostile fields."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.datasets.catalog import dataset_cards
from knowhalu.datasets.loading import hash_files, load_samples, open_dataset, recognise_dataset
from knowhalu.errors import InputError, SettingsError
from knowhalu.evaluation.slices import matched_pairs, matching_features
from tests.datasets.test_formats import saved
from tests.datasets.test_forms import CLAIM, FORMS, QA


def claims(*splits):
    return [{**CLAIM, "id": f"c{i}", "split": split} for i, split in enumerate(splits)]


@pytest.fixture
def write(tmp_path):
    def write_rows(name, rows):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write_rows


def ids(name, path, split=None):
    return [s.id for s in load_samples(open_dataset(name, path, split))]


def test_default_split_is_test_or_else_all_rows(write):
    path = write("d.jsonl", claims("val", "test", "test"))
    assert ids("claims", path) == ["c1", "c2"]
    assert ids("claims", path, "val") == ids("claims", path, "validation") == ["c0"]
    assert ids("claims", path, "all") == ["c0", "c1", "c2"]
    assert open_dataset("claims", write("e.jsonl", claims("a", "b"))).split == "all"
    assert open_dataset("claims", write("f.jsonl", claims("dev", "dev"))).split == "dev"
    assert open_dataset("claims", write("g.jsonl", [CLAIM])).split is None


def test_missing_split_is_refused_with_the_available_ones(write):
    with pytest.raises(InputError, match=r"no row is of the split 'dev'; there are 'test' \(2\), 'val' \(1\)"):
        ids("claims", write("d.jsonl", claims("val", "test", "test")), "dev")
    with pytest.raises(InputError, match="no row names a split in a field 'split'"):
        ids("claims", write("g.jsonl", [CLAIM]), "dev")
    with pytest.raises(InputError, match=r"line 2, field 'split': names no split, but other rows do"):
        ids("claims", write("h.jsonl", claims("test", None)))


def test_file_names_of_a_folder_tell_the_splits(write, tmp_path):
    write("d/wice_test.jsonl", claims(None))
    write("d/wice_dev.jsonl", claims(None, None))
    write("d/README.md", [])
    write("d/other.jsonl", [{"what": 1}])
    assert ids("wice", tmp_path / "d") == ["c0"]
    assert ids("wice", tmp_path / "d", "dev") == ["c0", "c1"]
    assert len(ids("wice", tmp_path / "d", "all")) == 3
    (tmp_path / "d/wice_test.jsonl").unlink()
    assert ids("wice", tmp_path / "d") == ["c0", "c1"]
    write("d/wice_test.jsonl", claims(None))
    with pytest.raises(InputError, match="has no split 'val'; its splits are 'dev', 'test'"):
        ids("wice", tmp_path / "d", "val")


def test_files_with_a_layout_of_the_set_are_taken_where_no_name_matches(write, tmp_path):
    write("d/mine.jsonl", claims(None))
    write("d/pairs.jsonl", [QA])
    (tmp_path / "d/torn.json").write_text("{")
    assert ids("claims", tmp_path / "d") == ["c0"]
    assert ids("qa-pairs", tmp_path / "d") == ["line-1-right", "line-1-hallucinated"]
    with pytest.raises(InputError, match="has no file with rows of this set, which have the fields document, right_summary"):
        ids("bump", tmp_path / "d")


def test_files_without_a_split_are_read_together_with_unique_ids(write, tmp_path):
    row = next(r for n, r, _ in FORMS if n == "qags")
    for name in ("mturk_cnndm", "mturk_xsum"):
        write(f"d/{name}.jsonl", [row])
    assert len(set(ids("qags", tmp_path / "d"))) == 4
    found = load_samples(open_dataset("qags", tmp_path / "d"))
    assert [s.meta["part"] for s in found] == ["mturk_cnndm", "mturk_cnndm", "mturk_xsum", "mturk_xsum"]


def test_folder_saved_by_the_datasets_library_is_read(tmp_path):
    rows = [{**CLAIM, "id": f"c{i}"} for i in range(5)]
    assert sorted(ids("claims", saved(tmp_path / "one", rows, files=2))) == [f"c{i}" for i in range(5)]
    assert not any("part" in s.meta for s in load_samples(open_dataset("claims", tmp_path / "one")))
    for split, some in (("train", rows[:3]), ("test", rows[3:])):
        saved(tmp_path / "two" / split, some)
    (tmp_path / "two" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert ids("claims", tmp_path / "two") == ["c3", "c4"]
    assert recognise_dataset(tmp_path / "two") == recognise_dataset(tmp_path / "one") == "claims"
    assert ids("claims", tmp_path / "two", "train") == ["c0", "c1", "c2"]
    with pytest.raises(InputError, match=r"flatten_indices\(\)"):
        ids("claims", saved(tmp_path / "three", rows, state={"_indices_data_files": [{"filename": "i"}]}))
    (tmp_path / "one" / "state.json").write_text("{}")
    with pytest.raises(InputError, match="state.json: names no data files"):
        ids("claims", tmp_path / "one")


def test_repeated_ids_get_their_place_and_are_stable(write):
    path = write("d.jsonl", [CLAIM, CLAIM, {**CLAIM, "id": "c1#line-2"}])
    assert ids("claims", path) == ids("claims", path) == ["c1", "c1#line-2", "c1#line-2#line-3"]


def test_file_of_another_set_is_refused_with_its_likely_set(write):
    row = next(r for n, r, _ in FORMS if n == "ragtruth")
    with pytest.raises(
        InputError, match=r"line 1, field 'summary_sentences': is missing.*This looks like ragtruth: knowhalu eval"
    ):
        ids("qags", write("d.jsonl", [{"article": "A", **row}]))
    with pytest.raises(InputError, match="Rows of factcc have text, claim, label or source, claim, label. This looks like"):
        ids("factcc", write("e.jsonl", [QA]))
    with pytest.raises(InputError, match=r"field 'article': is missing[^!]*summary_sentences[^!]*label.$"):
        ids("qags", write("f.jsonl", [{"what": 1}]))
    with pytest.raises(SettingsError, match="unknown data set 'ragtruh'. Did you mean 'ragtruth'"):
        open_dataset("ragtruh", write("g.jsonl", [row]))


def test_empty_or_missing_data_is_refused(write, tmp_path):
    (tmp_path / "empty").mkdir()
    for path, said in ((write("d.jsonl", []), "has no rows"), (tmp_path / "no", "no such file or folder"),
                       (tmp_path / "empty", "holds no .jsonl")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            open_dataset("claims", path)
    with pytest.raises(InputError, match=r"line 2, field 'label': is missing"):
        ids("samples", write("e.jsonl", [{"claim": "x", "label": "no"}, {"claim": "x", "label": None}]))


def test_file_hash_depends_on_bytes_and_order(write):
    one, two = write("a.jsonl", [CLAIM]), write("b.jsonl", [QA])
    assert hash_files([one]) == hash_files([write("c.jsonl", [CLAIM])]) != hash_files([two])
    assert hash_files([one, two]) != hash_files([two, one])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=9) | st.just("\ud800") | st.just("\x1b[2J"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "label", "start", "end"]), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(FORMS), st.data())
def test_hostile_fields_give_samples_or_one_clear_error(tmp_path_factory, form, data):
    name, row, _ = form
    for field in data.draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=3)):
        row = {**row, field: data.draw(JSON)}
    path = tmp_path_factory.mktemp("h") / "d.jsonl"
    path.write_text(json.dumps(row) + "\n")
    try:
        for sample in load_samples(open_dataset(name, path, "all")):
            assert sample.label in ("faithful", "hallucinated")
            sample.model_dump_json().encode("utf-8")
    except InputError as error:
        assert str(path) in str(error)


def test_the_documentation_lists_every_data_set_as_its_card_has_it():
    text = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text()
    for name, card in dataset_cards().items():
        assert f"| `{name}` | {card.about} | {card.labels} | {card.licence} |" in text


DATA = os.environ.get("KNOWHALU_DATA")
SIZES = {
    "knowhalu_qa_pairs": (2000, 1000), "knowhalu_summ_pairs": (1000, 500), "qags_cnndm": (714, 183),
    "summeval_conli": (1544, 294), "summedits8": (981, 613), "wice_claim_oracle": (1052, 729),
    "begin": (3600, 2209), "scifact": (337, 199), "fm2": (1379, 698),
    "fever_symmetric_v2": (1416, 710), "bump_pairs": (1778, 889), "feverous_sent": (2962, 1551), "healthver": (1694, 1024),
    "nli_cad_snli": (1997, 1345), "nli_control": (802, 475), "written_claims": (413, 211), "written_answers": (259, 157),
}  # fmt: skip
"""Rows and hallucinated rows of the evaluation files, pairs counted as two."""


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="set KNOWHALU_DATA to the folder with eval/*.jsonl.gz")
def test_the_evaluation_files_are_recognised_and_whole():
    files = {f.name.removesuffix(".jsonl.gz"): f for f in (Path(DATA or "") / "eval").glob("*.jsonl.gz")}
    assert files.keys() == SIZES.keys()
    for name, file in files.items():
        known = recognise_dataset(file)
        assert known in dataset_cards()
        labels = Counter(sample.label for sample in load_samples(open_dataset(known, file)))
        assert (labels.total(), labels["hallucinated"]) == SIZES[name], name


@pytest.mark.data
@pytest.mark.skipif(DATA is None, reason="set KNOWHALU_DATA to the folder with eval/*.jsonl.gz")
@pytest.mark.parametrize(("name", "file", "pairs"), [("knowhalu-qa", "qa", 101), ("knowhalu-summarization", "summ", 92)])
def test_length_matched_pairs_of_the_paper_are_counted(name, file, pairs):
    source = open_dataset(name, Path(DATA or "") / "eval" / f"knowhalu_{file}_pairs.jsonl.gz")
    assert len(matched_pairs(matching_features(load_samples(source)), source.card.near)) == 2 * pairs
