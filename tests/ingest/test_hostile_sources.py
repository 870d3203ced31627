"""Hostile and broken sources: no crash, bounded memory, no cycle, and no silent loss."""

import bz2
import gzip
import os
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.ingest.sources import DocumentReader
from knowhalu.io import compression
from tests.support.documents import dump, page, pdf

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 2**20
BOMB = 48 * MIB


def peak(path: Path) -> tuple[int, DocumentReader]:
    """Read a source, leaving out what is broken; return the most memory that Python held meanwhile, and the reader."""
    reader = DocumentReader(path, on_error="skip")
    tracemalloc.start()
    try:
        list(reader)
        return tracemalloc.get_traced_memory()[1], reader
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gz", "zst"])
def test_a_decompression_bomb_is_refused_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    """A record has a longest length, whatever the file unpacks to."""
    monkeypatch.setattr(compression, "MAX_RECORD_BYTES", MIB)
    path = tmp_path / ("x.jsonl.gz" if pack is gzip.compress else "x.jsonl.zst")
    path.write_bytes(pack(b'{"text": "' + b"a" * BOMB + b'"}\n{"text": "last"}\n'))  # type: ignore[operator]
    assert path.stat().st_size < MIB
    most, reader = peak(path)
    assert most < 12 * MIB and reader.problems == [f"{path}:1: the line is longer than 1 MiB; split the document"]


def frame(content: int, block: bytes) -> bytes:
    """Write a Zstandard frame that says it holds `content` bytes and has one plain block."""
    return b"\x28\xb5\x2f\xfd\xe0" + content.to_bytes(8, "little") + (len(block) << 3 | 1).to_bytes(3, "little") + block


def test_a_frame_that_declares_a_gigabyte_is_refused(tmp_path: Path) -> None:
    """Nothing is allocated on the word of a file."""
    line = b'{"text": "a"}\n'
    (tmp_path / "x.jsonl.zst").write_bytes(frame(len(line), line))
    assert [r.text for r in DocumentReader(tmp_path / "x.jsonl.zst")] == ["a"]
    for content in (2**30, 2**62):
        (tmp_path / "x.jsonl.zst").write_bytes(frame(content, line))
        with pytest.raises(InputError, match="cannot be read to its end"):
            list(DocumentReader(tmp_path / "x.jsonl.zst", on_error="skip"))


def test_a_gzip_file_with_a_wrong_length_is_refused(tmp_path: Path) -> None:
    """Also where what it holds was readable."""
    data = gzip.compress(b'{"text": "a"}\n')
    (tmp_path / "x.jsonl.gz").write_bytes(data[:-4] + (2**30).to_bytes(4, "little"))
    with pytest.raises(InputError, match="cannot be read to its end"):
        list(DocumentReader(tmp_path / "x.jsonl.gz", on_error="skip"))


@pytest.mark.parametrize("change", [(b"/Count 1", b"/Count 1000000000"), (b"/Length 4", b"/Length 1000000000"),
                                    (b"/Size ", b"/Size 99999999"), (b"/MediaBox[0 0 612 792]", b"/MediaBox 7 0 R")])  # fmt: skip
def test_a_manipulated_pdf_is_read_or_reported(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    """Counts and lengths are not believed."""
    (tmp_path / "x.pdf").write_bytes(pdf(["Text."]).replace(*change))
    most, reader = peak(tmp_path / "x.pdf")
    assert most < 64 * MIB and (reader.skipped or [r.text for r in DocumentReader(tmp_path / "x.pdf")] == ["Text."])


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    """Head, data or footer."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [f"text {i}" for i in range(1000)]}), path)
    data = path.read_bytes()
    for end in (0, 3, 12, len(data) // 2, len(data) - 9, len(data) - 1):
        path.write_bytes(data[:end])
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            list(DocumentReader(path, on_error="skip"))


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.txt", b"a\0b"), ("x.md", b"# T\n\0"), ("x.jsonl", b'{"text": "a\\u0000b"}'), ("x.csv", b"text\na\0b\n"),
     ("x.tsv", b"text\n\0\n")],
)  # fmt: skip
def test_text_with_nul_characters_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    """It is most likely a file of another kind under this name."""
    (tmp_path / name).write_bytes(data)
    reader = DocumentReader(tmp_path / name, on_error="skip")
    assert not list(reader) and "the text contains NUL characters" in reader.problems[0]


def test_nul_in_html_is_replaced_as_in_browsers(tmp_path: Path) -> None:
    """It is dropped or replaced, never kept."""
    (tmp_path / "x.html").write_bytes(b"<p>a\0b")
    (found,) = DocumentReader(tmp_path / "x.html")
    assert "\0" not in found.text and found.text[0] == "a" and found.text[-1] == "b"


def test_cyclic_links_between_folders_are_read_once(tmp_path: Path) -> None:
    """Links are followed, to folders and files, but no folder is read twice."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "a/twin").symlink_to(tmp_path / "a/b")
    (tmp_path / "a/b/x.txt").write_text("text")
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    elsewhere.mkdir()
    (elsewhere / "y.txt").write_text("more")
    (tmp_path / "link").symlink_to(elsewhere)
    assert sorted(r.id for r in DocumentReader(tmp_path)) == ["a/b/x.txt", "link/y.txt"]


def test_broken_links_are_reported(tmp_path: Path) -> None:
    """A document that is not there is a problem, not a silence."""
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    (tmp_path / "x.txt").write_text("text")
    os.mkfifo(tmp_path / "pipe.txt")
    reader = DocumentReader(tmp_path, on_error="skip")
    assert [r.id for r in reader] == ["x.txt"] and reader.skipped == 2
    assert "gone.txt: cannot be read (" in reader.problems[0] and "self.md: cannot be read (" in reader.problems[1]


def test_files_that_vanish_are_reported(tmp_path: Path) -> None:
    """One with a single document is a broken record; one with many is an error that cannot be skipped."""
    for name in ("a.txt", "b.html", "c.pdf", "d.txt"):
        (tmp_path / name).write_text("text")
    reader = DocumentReader(tmp_path, on_error="skip")
    for name in ("a.txt", "b.html", "c.pdf"):
        (tmp_path / name).unlink()
    assert [r.id for r in reader] == ["d.txt"]
    assert [p.partition(": ")[0] for p in reader.problems] == [str(tmp_path / n) for n in ("a.txt", "b.html", "c.pdf")]
    for name in ("x.jsonl", "x.parquet", "x-pages-articles.xml"):
        (tmp_path / name).write_text('{"text": "a"}')
        reader = DocumentReader(tmp_path / name, on_error="skip")
        (tmp_path / name).unlink()
        with pytest.raises(InputError, match="cannot be read"):
            list(reader)


SOUND = {
    "x.pdf": pdf(["First page.", "Second page."], "Title"),
    "x.html": b"<html><head><meta charset=utf-8><title>T</title></head><body><h1>A</h1><p>B <b>c</b><table><tr><td>d</table>",
    "x.md": b"---\ntitle: T\n---\n# A\n\n```\n# b\n```\nC\n---\nD\n",
    "x.csv": b'id,title,text\na,T,"some ""text"""\nb,U,more\n',
    "x-pages-articles.xml": dump(page(1, "A", "'''A''' is [[b|c]]. {{d|[[e]]}} == f =="), page(2, "B", "g<ref>h</ref>")),
    "x.jsonl.bz2": bz2.compress(b'{"text": "one", "id": 1}\n{"text": ["two", "three"]}\n' * 3),
}


@pytest.mark.parametrize("name", SOUND)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_flipped_or_lost_byte_yields_records_or_problems(tmp_path: Path, name: str, data: st.DataObject) -> None:
    """Whatever a file has suffered, its reader ends with records, with findings or with an error that names the file."""
    content = bytearray(SOUND[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(1, 3))] = data.draw(st.binary(max_size=3))
    (tmp_path / name).write_bytes(content)
    reader = DocumentReader(tmp_path / name, on_error="skip")
    try:
        for record in reader:
            assert record.text.strip() and all(0 <= h.start < h.end <= len(record.text) for h in record.headings)
    except InputError as error:
        assert name in str(error)
    assert all(name in problem for problem in reader.problems)
