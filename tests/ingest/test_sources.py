"""Markdown, HTML, PDF and compressed files: title, text, headings and places, and one message for every broken file."""

import bz2
import gzip
import lzma
import sys
from pathlib import Path

import pypdf
import pytest

from knowhalu.errors import InputError, MissingExtra
from knowhalu.index.chunking import chunk_document
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.sources import FORMATS, DocumentReader, SourceRecord, detect_format
from tests.support.documents import PICTURE, pdf

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def read(path: Path, data: bytes | str, **options: object) -> list[SourceRecord]:
    """Write a file, read its records, and check that headings and passages stand where they say."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = list(DocumentReader(path, **options))  # type: ignore[arg-type]
    for record in found:
        assert all(record.text[h.start : h.end].strip() for h in record.headings)
        for passage in chunk_document(record, Chunking(words=8, overlap=3)):
            assert record.text[passage.span.start : passage.span.end] == passage.span.text
    return found


def problem(path: Path, data: bytes) -> str:
    """Write a broken file; return its message, which is the same when reading stops and when it is skipped."""
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        list(DocumentReader(path))
    reader = DocumentReader(path, on_error="skip")
    assert not list(reader) and reader.skipped == 1
    assert str(caught.value) == f"{reader.problems[0]}. Correct the record, or skip such records"
    return reader.problems[0].removeprefix(str(path))


def test_markdown_text_is_unchanged_and_headings_are_found(tmp_path: Path) -> None:
    """Front matter gives the title; marks in fenced code are no headings; underlined headings are."""
    body = "Intro.\n\n## Use ##\n```sh\n# no heading\n```\nText.\n\nDetails\n---\nMore.\n\n- a\n---\n### Deep\n"
    (found,) = read(tmp_path / "n.md", f'---\ntags: x\ntitle: "My notes"\n---\n{body}')
    assert (found.id, found.title, found.text) == ("n.md", "My notes", body)
    assert [h.path for h in found.headings] == [("Use",), ("Details",), ("Details", "Deep")]
    assert [found.text[h.start : h.end] for h in found.headings] == ["## Use ##", "Details\n---", "### Deep"]


@pytest.mark.parametrize(
    ("text", "title", "paths"),
    [
        ("# Top #\ntext\n## Sub\nx", "Top", [("Sub",)]),
        ("Top\n===\ntext", "Top", []),
        ("+++\ntitle = 'Toml'\n+++\n# One\nx", "Toml", [("One",)]),
        ("---\n# made by hand\ntags:\n- a\ntitle: Listed\nmore: >\n  folded\n---\nx", "Listed", []),
        ("no heading", "n", []),
        ("---\nnever closed: x\n\ntext", "n", []),
        ("#no heading\n####### nor this\n    # nor code", "n", []),
        ("~~~\n# code\n```\n~~~\n# Real\nx", "Real", []),
        ("\ufeff# Marked\r\nx\r\n", "Marked", []),
    ],
)
def test_the_title_of_markdown(tmp_path: Path, text: str, title: str, paths: list[tuple[str, ...]]) -> None:
    """From the front matter, else the first heading, else the name."""
    (found,) = read(tmp_path / "n.md", text)
    assert (found.title, [h.path for h in found.headings]) == (title, paths)


@pytest.mark.parametrize(
    "between", ["This memo says the bridge closed on 3 May.", "- The bridge closed.", "# Bridge", "a: b\nIt closed."]
)
def test_text_between_rules_is_not_front_matter(tmp_path: Path, between: str) -> None:
    """An author may begin with a rule; nothing that is no name with a value is dropped."""
    text = f"---\n{between}\n\n---\nSigned: Bob\n"
    assert [r.text for r in read(tmp_path / "n.md", text)] == [text]


PAGE = """<!DOCTYPE html><html><head><title> A &amp; B </title><style>p {}</style><script>var x = "no";</script></head>
<body><nav>menu</nav><h1>A &amp; B</h1><p>One <b>bold</b>
word.<br>Next<!-- hidden --> line.</p><div hidden>no</div><div style="display: none">no</div>
<h2>Sub <i>two</i></h2><table><tr><td>c1<td>c2</table><ul><li>i1<li>i2</ul><pre>  x
  y</pre><noscript>no</noscript><template>no</template><p>Last&nbsp;caf&eacute;</body></html>"""


def test_html_gives_title_visible_text_and_headings(tmp_path: Path) -> None:
    """A block on each line; scripts, styles, menus, comments and what is hidden are not read."""
    (found,) = read(tmp_path / "p.html", PAGE)
    wanted = ["A & B", "One bold word.", "Next line.", "Sub two", "c1 c2", "i1", "i2", "  x", "  y", "Last café"]
    assert (found.id, found.title, found.text.split("\n")) == ("p.html", "A & B", wanted)
    assert [h.path for h in found.headings] == [("Sub two",)]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("10<sup>24</sup> kg, 10<sup><i>n</i></sup>, m<sup>2</sup>", "10^24 kg, 10^n, m2"),
        ("the 19<sup>th</sup> of 1889<sup>2</sup>", "the 19th of 1889^2"),
        ("1889<sup><a href='#n2'>2</a></sup>, 1890<sup>[3]</sup>", "1889, 1890"),
        ("1889<a href='/page#n2'><sup>2</sup></a>", "1889"),
        ("<a href='#big'>10<sup>2</sup> km</a>", "10^2 km"),
        ("10<sup></sup> 5" + "<sup>" * 20_000, "10 5"),
    ],
    ids=range(6),
)
def test_superscripts_are_exponents_and_footnote_marks_are_dropped(tmp_path: Path, page: str, text: str) -> None:
    """A figure never runs into the one behind it."""
    assert [r.text for r in read(tmp_path / "p.html", f"<p>{page}")] == [text]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'<meta charset="iso-8859-2"><p>\xb1', "ą"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1"><p>\x93q\x94', "“q”"),
        (b'<?xml version="1.0" encoding="windows-1251"?><html><p>\xc6', "Ж"),
        ("\ufeff<meta charset=latin1><p>ä".encode(), "ä"),
        ("\ufeff<p>日".encode("utf-16-le"), "日"),
        (b"<meta charset=shift_jis><p>\x93\xfa", "日"),
        ("<p>ä".encode(), "ä"),
    ],
)
def test_html_is_decoded_by_its_declaration(tmp_path: Path, data: bytes, text: str) -> None:
    """A byte order mark counts most, then the declaration, read as browsers read it."""
    assert [r.text for r in read(tmp_path / "p.htm", data)] == [text]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<p>\xe4", ": the encoding is unclear: the page declares no encoding and is not UTF-8"),
        (b"<meta charset=utf-8><p>\xe4", ": the encoding is unclear: the page declares utf-8"),
        (b"<meta charset=klingon><p>x", ": the encoding 'klingon' is unknown"),
        (b"<meta charset=base64><p>x", ": the encoding 'base64' is unknown"),
    ],
)
def test_html_of_unclear_encoding_is_a_problem(tmp_path: Path, data: bytes, message: str) -> None:
    """No letter is guessed."""
    assert problem(tmp_path / "p.html", data).startswith(message)


def test_a_page_without_text_is_counted_and_a_deep_one_is_read(tmp_path: Path) -> None:
    """A frame has nothing to read; nesting has no end that matters."""
    (tmp_path / "p.html").write_text("<title>x</title><body><script>x</script>")
    reader = DocumentReader(tmp_path / "p.html")
    assert not list(reader) and reader.left_out == {"HTML page without visible text": 1}
    (found,) = read(tmp_path / "p.html", "<div>" * 20_000 + "deep")
    assert found.text == "deep"


def test_a_pdf_yields_a_document_for_each_page(tmp_path: Path) -> None:
    """Id, title and place contain the page; blank pages are counted."""
    path = tmp_path / "doc.pdf"
    found = read(path, pdf(["First line.\nSecond caf\xe9.", "", "Third."], "The report"))
    assert [(r.id, r.title, r.text, r.where) for r in found] == [
        ("doc.pdf#page=1", "The report, page 1", "First line.\nSecond café.", f"{path}, page 1"),
        ("doc.pdf#page=3", "The report, page 3", "Third.", f"{path}, page 3"),
    ]
    reader = DocumentReader(path)
    assert len(list(reader)) == 2 and reader.left_out == {"blank PDF page": 1}


def test_scanned_pages_of_a_pdf_are_reported(tmp_path: Path) -> None:
    """The pages with text are read, and the scanned ones named."""
    (tmp_path / "s.pdf").write_bytes(pdf(["Text.", PICTURE, PICTURE]))
    reader = DocumentReader(tmp_path / "s.pdf", on_error="skip")
    assert [r.title for r in reader] == ["s, page 1"]
    assert "s.pdf: pages 2, 3: pictures without text, as in a scan; run text recognition" in reader.problems[0]


def locked(password: str) -> bytes:
    """Write a PDF that opens with a password."""
    from io import BytesIO

    writer = pypdf.PdfWriter(clone_from=BytesIO(pdf(["Secret."])))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    data = BytesIO()
    writer.write(data)
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pdf([PICTURE]), ": pages 1: pictures without text"),
        (pdf(["", ""]), ": the file has no text"),
        (locked("secret"), ": needs a password"),
        (b"%PDF", ": cannot be read as PDF"),
        (b"", ": cannot be read as PDF"),
        (pdf(["Text."]).replace(b"/Kids[6 0 R]", b"/Kids[2 0 R]"), ": cannot be read as PDF"),
    ],
    ids=["scan", "blank", "locked", "cut", "empty", "circle"],
)
def test_a_pdf_that_cannot_be_read_is_a_problem(tmp_path: Path, data: bytes, message: str) -> None:
    """No PDF is passed over in silence."""
    assert problem(tmp_path / "x.pdf", data).startswith(message)


def test_a_pdf_with_an_owner_password_is_read(tmp_path: Path) -> None:
    """An empty password opens it, as every viewer does."""
    assert [r.text for r in read(tmp_path / "x.pdf", locked(""))] == ["Secret."]


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_files_are_read_to_the_end(tmp_path: Path, ending: str) -> None:
    """Several streams in one file are one text; a file that breaks off, or is flawed in any stream, is an error."""
    path = tmp_path / f"x.jsonl{ending}"
    one, two = (PACKERS[ending](b'{"text": "%s"}\n' % t) for t in (b"one", b"two"))
    assert [r.text for r in read(path, one + two)] == ["one", "two"]
    assert DocumentReader(path).total == len(one + two)
    for data in (one[:-5], one + two[:-5], one + b"no stream at all", b"no stream at all", one + two[:6] + b"\xff" * 40):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"x\.jsonl\.\w+: cannot be read to its end"):
            list(DocumentReader(path, on_error="skip"))


@pytest.mark.parametrize(
    ("name", "format"),
    [("psgs_w100.tsv", "dpr"), ("psgs_w100.tsv.gz", "dpr"), ("wiki_00.bz2", "hotpotqa"), ("A.JSONL.ZST", "jsonl"),
     ("enwiki-20240101-pages-articles-multistream.xml.bz2", "wikipedia"), ("dewiki-pages-articles1.xml-p1p2.bz2", "wikipedia"),
     ("enwiki-pages-articles-multistream-index.txt.bz2", None), ("kilt_knowledgesource.json", "kilt"), ("x.html.gz", None),
     ("x.MD", "markdown"), ("x.docx", None), ("collection.tsv", "tsv"), ("corpus.jsonl", "jsonl")],
)  # fmt: skip
def test_formats_are_detected_by_name(tmp_path: Path, name: str, format: str | None) -> None:
    """Also in capitals and packed."""
    assert detect_format(tmp_path / name) == format


def test_a_wikipedia_dump_is_detected_by_its_first_bytes(tmp_path: Path) -> None:
    """Only a dump of MediaWiki is read."""
    (tmp_path / "a.xml").write_text('<mediawiki xml:lang="en">')
    (tmp_path / "b.xml").write_text("<rss/>")
    assert [detect_format(tmp_path / n) for n in ("a.xml", "b.xml", "gone.xml")] == ["wikipedia", None, None]


def test_a_format_may_be_named(tmp_path: Path) -> None:
    """A name of no known kind is then read; an unknown format is refused with those that are known."""
    assert [r.text for r in read(tmp_path / "notes.log", "Plain.", format="text")] == ["Plain."]
    with pytest.raises(InputError, match=f"the format 'doc' is unknown. Known formats are {', '.join(FORMATS)}"):
        DocumentReader(tmp_path / "notes.log", format="doc")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("x.html", "selectolax", "html"), ("x.pdf", "pypdf", "pdf"), ("x.jsonl.zst", "backports", "zst"),
     ("x-pages-articles.xml", "mwparserfromhell", "wiki"), ("x.parquet", "pyarrow", "parquet")],
)  # fmt: skip
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str) -> None:
    """The message says what to install."""
    hidden = [m for m in sys.modules if m.split(".")[0] in {package, "compression"}]
    for module in [*hidden, package, "compression"]:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(MissingExtra, match=rf"{package}.* is not installed. Run: pip install 'knowhalu\[{extra}\]'"):
        list(DocumentReader(tmp_path / name))


def test_records_do_not_depend_on_worker_processes(tmp_path: Path) -> None:
    """Order, problems and counts are those of one process."""
    for i in range(12):
        (tmp_path / f"p{i:02}.html").write_bytes(b"<p>\xe4" if i == 5 else f"<p>page {i}".encode() if i != 7 else b"")
    (tmp_path / "a.txt").write_text("text")
    one, two = DocumentReader(tmp_path, on_error="skip"), DocumentReader(tmp_path, on_error="skip", workers=2)
    assert list(one) == list(two) and one.problems == two.problems and one.left_out == two.left_out
    assert len(one.problems) == 1 and one.left_out.total() == 1
