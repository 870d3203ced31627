"""Reading records: the same records from every format, and one message for every broken one."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from knowhalu.errors import InputError
from knowhalu.ingest.records import FieldNames
from knowhalu.ingest.sources import DocumentReader
from knowhalu.io import compression

ROWS = [
    {"id": "a", "title": "Ärger", "text": 'He said "no".\nThen, he left.'},
    {"id": "b", "title": "", "text": "Naïve café 日本 𝄞."},
]
WANTED = [(r["id"], r["title"], r["text"]) for r in ROWS]


def write_jsonl(path: Path) -> None:
    """Write the rows as JSON lines, packed where the name says so, once with a byte order mark."""
    data = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in ROWS).encode()
    data = b"\xef\xbb\xbf" + data if path.suffix == ".ndjson" else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_table(path: Path) -> None:
    """Write the rows as a table with quoting."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.DictWriter(file, ["id", "text", "title"], delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(ROWS)


def write_parquet(path: Path) -> None:
    """Write the rows as Parquet, with a column nobody asked for."""
    pq.write_table(pa.Table.from_pylist([{**r, "vector": [0.5] * 4} for r in ROWS]), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("x.jsonl", write_jsonl), ("x.jsonl.gz", write_jsonl), ("x.ndjson", write_jsonl), ("x.csv", write_table),
     ("x.tsv", write_table), ("x.parquet", write_parquet)],
)  # fmt: skip
def test_every_format_yields_the_same_records(tmp_path: Path, name: str, write: object) -> None:
    """Line breaks, quotes and letters of all scripts survive."""
    write(tmp_path / name)  # type: ignore[operator]
    reader = DocumentReader(tmp_path / name)
    assert [(r.id, r.title, r.text) for r in reader] == WANTED
    assert reader.read == reader.total > 0 and [r.id for r in reader] == ["a", "b"]


def test_a_folder_is_read_in_a_fixed_order(tmp_path: Path) -> None:
    """Files of other kinds and hidden ones are left out, the former by name."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/note.md").write_text("# The title\n\nBody.")
    (tmp_path / "b.txt").write_text("Plain text.")
    (tmp_path / ".hidden.txt").write_text("no")
    (tmp_path / "sheet.xlsx").write_bytes(b"PK")
    write_jsonl(tmp_path / "c.jsonl")
    reader = DocumentReader(tmp_path)
    found = list(reader)
    assert [r.id for r in found] == ["b.txt", "a", "b", "sub/note.md"]
    assert (found[0].title, found[3].title, found[3].text) == ("b", "The title", "# The title\n\nBody.")
    assert reader.ignored == [str(tmp_path / "sheet.xlsx")]


def test_field_names_are_detected_or_set(tmp_path: Path) -> None:
    """Common names by themselves, any name on request; numbers become ids; a missing id is file and line."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"docid": 7, "contents": "one"}\n{"contents": "two", "abstract": "three", "name": "N"}\n')
    assert [(r.id, r.text) for r in DocumentReader(path)] == [("7", "one"), ("x.jsonl:2", "two")]
    (tmp_path / "y.txt").write_text("four")
    reader = DocumentReader([path, tmp_path / "y.txt"], fields=FieldNames(text=["abstract"], title=["name"]), on_error="skip")
    assert [(r.title, r.text) for r in reader] == [("N", "three"), ("y", "four")] and reader.skipped == 1


LINES = [
    (b'{"text": "a"', r"x\.jsonl:2: not JSON"),
    (b'{"text": "\xff"}', r"x\.jsonl:2: not UTF-8.*convert"),
    (b'["text"]', r"x\.jsonl:2: a JSON list, not an object"),
    (b'{"title": "a", "id": "q"}', r"x\.jsonl:2: no field text or contents or .* \(the record has title, id\)"),
    (b'{"text": " \\n "}', r"x\.jsonl:2: the text is empty"),
    (b'{"text": 5}', r"x\.jsonl:2: the field text is int, not text"),
    (b'{"text": "a", "id": true}', r"x\.jsonl:2: the field id is bool"),
    (b'{"text": "\\ud800"}', r"x\.jsonl:2: the field text is not valid UTF-8"),
    (b'{"text": "again", "id": "first"}', r"x\.jsonl:2: the id 'first' is used twice"),
    (b"[" * 100_000, r"x\.jsonl:2: not JSON"),
]


@pytest.mark.parametrize(("line", "message"), LINES, ids=[m.partition(": ")[2][:20] for _, m in LINES])
def test_a_broken_line_is_named_or_skipped(tmp_path: Path, line: bytes, message: str) -> None:
    """The error names file, line, fault and remedy; skipping continues with the next line."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "ok", "id": "first"}\n' + line + b'\n\n{"text": "last", "id": "last"}\n')
    with pytest.raises(InputError, match=message + ".*Correct the record, or skip"):
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert [r.id for r in reader] == ["first", "last"]
    assert reader.skipped == len(reader.problems) == 1 and str(path) in reader.problems[0]


@pytest.mark.parametrize(("name", "content"), [("part.jsonl", '{"text": "a"}'), ("notes.txt", "a")])
def test_equal_file_names_in_two_folders_need_the_common_parent(tmp_path: Path, name: str, content: str) -> None:
    """Their ids meet where the folders are given one by one, and the message says what to give."""
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / name).write_text(content)
    with pytest.raises(InputError, match="is used twice.*give the common parent"):
        list(DocumentReader([tmp_path / "a", tmp_path / "b"]))
    assert len(list(DocumentReader(tmp_path))) == 2


CELLS = [
    (b'b\t"raw" quote', "quotes off"),
    (b"b", r"1 columns instead of 2 \(id, text\)"),
    (b"b\t\xff\xfe", "not valid UTF-8"),
    (b"a\tagain", "the id 'a' is used twice"),
]


@pytest.mark.parametrize(("line", "message"), CELLS, ids=[m[:12] for _, m in CELLS])
def test_a_broken_row_of_a_table_is_named_or_skipped(tmp_path: Path, line: bytes, message: str) -> None:
    """Tables are as strict as JSON lines."""
    path = tmp_path / "x.tsv"
    path.write_bytes(b"id\ttext\na\tone\n" + line + b"\nc\tlast\n")
    with pytest.raises(InputError, match=r"x\.tsv:3: .*" + message):
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert [r.id for r in reader] == ["a", "c"] and reader.skipped == 1


def test_quotes_can_be_plain_characters(tmp_path: Path) -> None:
    """A table that never heard of quoting keeps its marks."""
    (tmp_path / "x.tsv").write_text('id\ttext\na\t"To be" he said\n')
    assert [r.text for r in DocumentReader(tmp_path / "x.tsv", quotes=False)] == ['"To be" he said']


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt"])
def test_an_endless_line_is_refused_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A record over the limit is a problem of its own; what follows is read."""
    monkeypatch.setattr(compression, "MAX_RECORD_BYTES", 100)
    head = {"x.csv": "text\n"}.get(name, "")
    tail = {"x.jsonl": '\n{"text": "short"}\n', "x.csv": "\nshort\n"}.get(name, "")
    (tmp_path / name).write_text(head + "y" * 1000 + tail)
    reader = DocumentReader(tmp_path / name, on_error="skip")
    assert [r.text for r in reader] == (["short"] if tail else []) and reader.skipped == 1


def test_a_truncated_file_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    """Half an archive is no small loss: the rest of it cannot be read at all."""
    write_jsonl(tmp_path / "x.jsonl.gz")
    whole = (tmp_path / "x.jsonl.gz").read_bytes()
    for data in (whole[:-12], b"not gzip at all", whole[:20] + b"\0\0\0\0" + whole[24:]):
        (tmp_path / "x.jsonl.gz").write_bytes(data)
        with pytest.raises(InputError, match=r"x\.jsonl\.gz: cannot be read to its end"):
            list(DocumentReader(tmp_path / "x.jsonl.gz", on_error="skip"))
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match=r"x\.parquet: cannot be read as Parquet"):
        list(DocumentReader(tmp_path / "x.parquet"))


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    """A missing path, an empty folder and an unknown kind each say what to give."""
    with pytest.raises(InputError, match="no such file or folder"):
        DocumentReader(tmp_path / "gone")
    with pytest.raises(InputError, match="no documents found.*jsonl"):
        DocumentReader(tmp_path)
    (tmp_path / "x.docx").write_bytes(b"x")
    with pytest.raises(InputError, match=r"x\.docx: unknown format"):
        list(DocumentReader(tmp_path / "x.docx"))


def test_records_are_read_one_at_a_time(tmp_path: Path) -> None:
    """The first record is there before the rest of the file is looked at."""
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "first"}\nbroken\n')
    assert next(iter(DocumentReader(tmp_path / "x.jsonl"))).text == "first"
