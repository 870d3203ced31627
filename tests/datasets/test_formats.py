"""Rows in every file format, valid and damaged."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.io.rows import read_rows

ROWS = [{"id": "a", "text": 'He said "no", twice.', "label": "0"}, {"id": "b", "text": "Zwei\nZeilen, ü", "label": "1"}]


def fields(path):
    return [row.fields for row in read_rows(path)]


def parquet(path, rows, metadata=None):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows).replace_schema_metadata(metadata), path)
    return path


def saved(folder, rows, features=None, files=1, state=None):
    """Write a folder as `save_to_disk` of the datasets library leaves it."""
    pa = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{i:05d}-of-{files:05d}.arrow" for i in range(files)]
    for i, name in enumerate(names):
        table = pa.Table.from_pylist(rows[i::files])
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": n} for n in names], **(state or {})}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features or {}}))
    return folder


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.json", "d.json.gz"])
def test_json_rows_are_read(tmp_path, name):
    text = json.dumps(ROWS) if ".json." in f"{name}." and "jsonl" not in name else "".join(json.dumps(r) + "\n" for r in ROWS)
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert fields(path) == ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("d.csv", ","), ("d.tsv", "\t"), ("d.csv.gz", ",")])
def test_csv_and_tsv_rows_are_read(tmp_path, name, delimiter):
    import csv
    import io

    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, ROWS[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows([*ROWS, {"id": "c", "text": "x", "label": ""}])
    data = b"\xef\xbb\xbf" + buffer.getvalue().encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert fields(path) == [*ROWS, {"id": "c", "text": "x", "label": None}]
    assert [row.place.rpartition(", ")[2] for row in read_rows(path)] == ["line 2", "line 3", "line 5"]


def test_parquet_and_arrow_rows_are_read(tmp_path):
    assert fields(parquet(tmp_path / "d.parquet", ROWS)) == ROWS
    assert fields(next(saved(tmp_path / "s", ROWS).glob("*.arrow"))) == ROWS


def test_class_labels_are_replaced_by_their_names(tmp_path):
    features = {"label": {"names": ["SUPPORTS", "REFUTES"], "_type": "ClassLabel"}, "id": {"dtype": "string", "_type": "Value"}}
    rows, named = [{"label": 1}, {"label": 0}, {"label": None}, {"label": -1}], ["REFUTES", "SUPPORTS", None, -1]
    head = {"huggingface": json.dumps({"info": {"features": features}})}
    assert [r["label"] for r in fields(parquet(tmp_path / "d.parquet", rows, head))] == named
    assert [r["label"] for r in fields(next(saved(tmp_path / "s", rows, features).glob("*.arrow")))] == named


@pytest.mark.parametrize(("name", "data", "said"), [
    ("d.csv", b"a,b\n1,2,3\n", "line 2: 3 cells where the first line names 2"),
    ("d.csv", b'a,b\n"1,2\n', "not a table"),
    ("d.csv", b"a,b\n\xff,2\n", "not UTF-8"),
    ("d.csv.gz", b"a,b\n", "cannot be read"),
    ("d.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], "cannot be read"),
    ("d.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:10] + b"\xff" * 9, "cannot be read"),
    ("d.parquet", b"PAR1 no", "cannot be read"),
    ("d.arrow", b"no arrow", "cannot be read"),
    ("d.jsonl", b"[1]\n", "not an object"),
    ("d.jsonl", b"1\n", "line 1: not an object with named fields"),
    ("d.jsonl", b'{"a": 1}\n{"a": \n', "line 2: not JSON"),
])  # fmt: skip
def test_damaged_file_is_one_clear_error(tmp_path, name, data, said):
    if name.endswith(("parquet", "arrow")):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=said) as error:
        fields(path)
    assert str(path) in str(error.value)


@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".jsonl", ".json", ".csv.gz", ".parquet", ".arrow"]))
def test_arbitrary_bytes_give_rows_or_an_input_error(tmp_path_factory, data, suffix):
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("b") / f"d{suffix}"
    path.write_bytes(data)
    try:
        assert all(isinstance(row.fields, dict) for row in read_rows(path))
    except InputError as error:
        assert str(path) in str(error)
