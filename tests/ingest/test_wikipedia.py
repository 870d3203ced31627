"""A Wikipedia dump from XML to search: articles and sections are read, everything else is skipped with a reason."""

import bz2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.index.build import build_index
from knowhalu.index.chunking import chunk_document
from knowhalu.index.manifest import Chunking
from knowhalu.ingest import wikipedia
from knowhalu.ingest.sources import DocumentReader
from knowhalu.ingest.wikitext import read_wikitext, remove_leftover_markup
from knowhalu.io import compression
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.documents import HEAD, dump, page
from tests.support.indexing import WordEmbedder

EVEREST = """{{Short description|Highest mountain}}
{{Infobox mountain
| name = Everest
| elevation = {{convert|8848|m|ft}}
| map = {{location|{{lat|{{deg|27}}}}|caption={{a|[[b]]}}}}
}}
'''Mount Everest''' ({{IPA|/x/}}; {{lang-ne|सगरमाथा}}) is [[Earth]]'s [[Summit|highest mountain]]&nbsp;above sea
level.<ref name="a">{{cite web|title=X [[y]]}}</ref> It is {{convert|8848|m|ft}} high.<!-- hidden --> Its ''slopes''
are steep{{cn}}, at 40 &lt; 50 degrees<ref name="a" />.
[[File:Everest.jpg|thumb|A [[view]] of ''it'']] [[Datei:E.jpg|mini|no]]
{| class="wikitable"
! year !! climbers
|-
| 1953 || {{flag|NP}} 2 {| nested | table |}
|}
== Climbing ==
=== First {{nowrap|ascent}} ===
[[Edmund Hillary]] and [[Tenzing Norgay]] reached the top in 1953.
* One [http://x.org route] is [https://y.org]
* Two are {{snd}} hard

<gallery>
File:x.jpg|no
</gallery>
== See also ==
* [[K2]]
== References ==
{{reflist}}
=== Deeper ===
no
== Later ==
<div class="x">In a box.</div><math>E = mc^2</math><syntaxhighlight lang="c">int no;</syntaxhighlight><br>After.
[[Category:Mountains]] [[Kategorie:Berge]] [[fr:Everest]] [[:Category:Kept link|kept]] __NOTOC__
"""
LEAD = (
    "Mount Everest (सगरमाथा) is Earth's highest mountain above sea\nlevel. It is 8848 m high. Its slopes\n"
    "are steep, at 40 < 50 degrees."
)


def write(path: Path, *pages: str, streams: int = 1) -> Path:
    """Write a packed dump, in so many streams."""
    data = dump(*pages)
    size = -(-len(data) // streams)
    path.write_bytes(b"".join(bz2.compress(data[i : i + size]) for i in range(0, len(data), size)))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a dump."""
    return tmp_path / "dewiki-20240101-pages-articles-multistream.xml.bz2"


def test_an_article_becomes_text_with_its_sections(path: Path) -> None:
    """Worked example: what goes, what stays, and where the sections lie."""
    (found,) = DocumentReader(write(path, page(7, "Mount Everest", EVEREST)))
    assert (found.id, found.title) == ("7", "Mount Everest") and found.text.startswith(LEAD + "\n\nClimbing\n")
    assert [h.path for h in found.headings] == [("Climbing",), ("Climbing", "First ascent"), ("Later",)]
    assert all(found.text[h.start : h.end] == h.path[-1] for h in found.headings)
    passages = list(chunk_document(found, Chunking(words=40)))
    assert all(found.text[s.start : s.end] == s.text for _, s in passages)
    assert [(section, span.text) for section, span in passages] == [
        ("", LEAD),
        ("Climbing > First ascent",
         "Climbing\n\nFirst ascent\nEdmund Hillary and Tenzing Norgay reached the top in 1953.\n"
         "One route is\nTwo are – hard"),
        ("Later", "Later\nIn a box.\n\nAfter.\nkept"),
    ]  # fmt: skip


def test_pages_that_are_not_articles_are_counted_by_reason(path: Path) -> None:
    """Nothing is read of it, and nothing is forgotten."""
    write(
        path,
        page(1, "Everest", "#REDIRECT [[Mount Everest]]", redirect="Mount Everest"),
        page(2, "Talk:Everest", "Talk.", space=1),
        page(3, "Template:Cn", "{{x}}", space=10),
        page(4, "Mercury", "'''Mercury''' may be:\n* [[Mercury (planet)]]\n{{Disambiguation|planets}}"),
        page(5, "Mars (disambiguation)", "Mars may be"),
        page(6, "Merkur", "Merkur ist\n{{Begriffsklärung}}"),
        page(7, "List of mountains", "* [[Everest]]"),
        page(8, "Liste der Berge", "* [[Everest]]"),
        page(9, "Listing", "A listing is a list."),
        page(10, "Only boxes", "{{Infobox|a=b}}\n[[Category:X]]"),
        page(11, "Data", "{}", model="json"),
    )
    reader = DocumentReader(path)
    assert [r.title for r in reader] == ["Listing"]
    assert reader.left_out == {"redirect": 1, "namespace 1": 1, "namespace 10": 1, "disambiguation": 3, "list": 2,
                               "page without text": 1, "not wikitext": 1}  # fmt: skip


BAD = "  <page>\n    <title>Bad</title>\n    <revision><text>a & b</text></revision>\n  </page>\n"
BROKEN = [
    (BAD, 12, "the page is not well-formed XML (not well-formed (invalid token))"),
    (BAD.replace("&", "&lol;"), 12, "the page is not well-formed XML (undefined entity)"),
    (BAD.replace("&", "<!ENTITY x 'y'>"), 12, "the page is not well-formed XML (not well-formed (invalid token))"),
    (BAD.replace("&", "\0"), 12, "the page is not well-formed XML (not well-formed (invalid token))"),
    (BAD.replace("  </page>\n", ""), 10, "the page has no end (</page>)"),
    (BAD.replace("<title>Bad</title>", "").replace("&", ""), 10, "the page has no title"),
    ("  <page>\n<title>Bad</title>\n  </page>\n", 10, "the page has no text"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "line", "message"), BROKEN, ids=[m[9:40] for _, _, m in BROKEN])
def test_a_broken_page_does_not_affect_others(path: Path, bad: str, line: int, message: str) -> None:
    """It is named by file and line, stops or is skipped, and its neighbours are read."""
    first = page(1, "First", "One.")
    line += first.count("\n") + HEAD.count("\n") - 9
    write(path, first, bad, page(2, "Last", "Two."))
    with pytest.raises(InputError) as caught:
        list(DocumentReader(path))
    assert f"{path}:{line}: {message}" in str(caught.value)
    reader = DocumentReader(path, on_error="skip")
    assert [r.title for r in reader] == ["First", "Last"] and reader.problems == [f"{path}:{line}: {message}"]


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BOMB.encode() + b"]>" + dump(page(1, "A", "&i;")), r":1: declares a document type or an entity"),
        (HEAD.replace("<siteinfo>", '<!ENTITY a SYSTEM "file:///etc/passwd">').encode() + dump(), ":2: declares"),
        (dump(page(1, "A", "a"))[:-15], "is not a complete Wikipedia dump"),
        (dump(page(1, "A", "a"))[:-60], "is not a complete Wikipedia dump"),
        (b"<rss></rss>", "is not a complete Wikipedia dump"),
        (b"", "is not a complete Wikipedia dump"),
    ],
)
def test_an_invalid_dump_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """No entity is ever expanded, and half a file is not taken for a whole one, even when broken records are skipped."""
    (tmp_path / "x-pages-articles.xml").write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(DocumentReader(tmp_path / "x-pages-articles.xml", on_error="skip"))


@pytest.mark.parametrize("cut_off", [1, 40, 300])
def test_a_truncated_compressed_dump_is_refused(path: Path, cut_off: int) -> None:
    """Also where it ends between two streams."""
    data = write(path, *[page(i, f"T{i}", "Text.") for i in range(20)]).read_bytes()
    path.write_bytes(data[:-cut_off])
    with pytest.raises(InputError, match="cannot be read to its end"):
        list(DocumentReader(path, on_error="skip"))
    path.write_bytes(bz2.compress(dump(page(1, "A", "a"))[:-20]))
    with pytest.raises(InputError, match="is not a complete Wikipedia dump"):
        list(DocumentReader(path))


def test_an_endless_page_is_refused_in_bounded_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a problem of its own, by one long line or by many."""
    monkeypatch.setattr(compression, "MAX_RECORD_BYTES", 2000)
    write(path, page(1, "Line", "x" * 9000), page(2, "Lines", "x\n" * 4000), page(3, "Short", "Text."))
    reader = DocumentReader(path, on_error="skip")
    assert [r.title for r in reader] == ["Short"] and reader.skipped == 2
    assert all("longer than" in problem for problem in reader.problems)


def test_articles_do_not_depend_on_streams_lines_or_processes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many streams, no line breaks between pages and several processes give the same records in the same order."""
    monkeypatch.setattr(wikipedia, "BATCH_BYTES", 1000)
    pages = [page(i, f"T{i}", f"Text {i}." if i % 3 else "#REDIRECT", redirect="" if i % 3 else "x") for i in range(30)]
    plain = DocumentReader(write(path, *pages))
    wanted = list(plain)
    assert len(wanted) == 20
    several = DocumentReader(path, workers=2)
    assert list(several) == wanted and several.left_out == plain.left_out and several.read == several.total
    assert list(DocumentReader(write(path, *pages, streams=9))) == wanted
    glued = (HEAD + "".join(p.strip().replace("\n", " ") for p in pages) + "</mediawiki>").encode()
    path.write_bytes(bz2.compress(glued))
    assert [r[:3] for r in DocumentReader(path)] == [r[:3] for r in wanted]


def test_a_dump_is_built_and_searched(path: Path, tmp_path: Path, words: WordEmbedder) -> None:
    """From XML to the passage that answers, with its article and section."""
    write(
        path,
        page(7, "Mount Everest", EVEREST),
        page(8, "Everest", "#REDIRECT [[Mount Everest]]", redirect="Mount Everest"),
        page(9, "Hamlet", "'''Hamlet''' is a tragedy that [[Shakespeare]] wrote.\n== Plot ==\nA prince sees a ghost."),
        BAD,
        streams=3,
    )
    reader = DocumentReader(path, on_error="skip")
    build_index(reader, tmp_path / "index", words)
    index = FaissIndex.open(tmp_path / "index", words)
    (first,), (second,) = index.search(["Hillary Tenzing Norgay reached top 1953", "prince sees ghost"], 1)
    assert (first.title, first.document) == ("Mount Everest > Climbing > First ascent", "7")
    assert "Tenzing Norgay reached the top in 1953." in first.text
    assert (second.title, second.document) == ("Hamlet > Plot", "9")
    texts = {r.id: r.text for r in DocumentReader(path, on_error="skip")}
    assert all(texts[p.document][p.start : p.end] == p.text for p in (first, second))
    assert reader.skipped == 1 and reader.left_out == {"redirect": 1}


SOUP = st.lists(
    st.sampled_from(["{{", "}}", "[[", "]]", "|", "'''", "==", "\n", "{|", "|}", "|-", "<ref>", "</ref>", "<ref/>", "a", "File:",
                     "[http://x ", "]", "&amp;", "<!--", "-->", "<div>", "</div>", "* ", "<nowiki>", "</nowiki>", "(", ")", ";"]),
    max_size=40,
).map(" ".join)  # fmt: skip


@given(SOUP)
def test_any_wikitext_can_be_read(source: str) -> None:
    """Whatever the markup, the headings stand where they say and the text is tidy."""
    article = read_wikitext(source, ["file"])
    assert all(article.text[h.start : h.end] == h.path[-1] for h in article.headings)
    assert article.text == article.text.strip() and "\n\n\n" not in article.text


def test_leftover_markup_is_removed() -> None:
    """Brackets that lost what was in them go, and so do spaces before a full stop."""
    assert remove_leftover_markup("'''A''' ( ; , ) is (; b) and (c, ) [ ] here .\n\n\n\n__NOTOC__\nNext  one ''(x)''") == (
        "A is (b) and (c) here.\n\nNext one (x)"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("It is {{val|5.972|e=24|u=kg}}.", "It is 5.972 × 10^24 kg."),
        ("It is {{val|938.272|0.006|ul=MeV}}.", "It is 938.272 ± 0.006 MeV."),
        ("He is {{convert|6|ft|2|in|m}} tall.", "He is 6 ft 2 in tall."),
        ("They are {{convert|3|to|10|cm|in}} long.", "They are 3 to 10 cm long."),
        ("A room of {{convert|3|x|5|m|ft|1}}.", "A room of 3 × 5 m."),
        ("{{convert|3|-|5|km|1}} and {{cvt|9.8|e6km2|sqmi}}", "3–5 km and 9.8 × 10^6 km2"),
        ("By {{ill|Hans Müller|de}} and {{ill|Erik (arkitekt)|sv|lt=Erik}}.", "By Hans Müller and Erik."),
        ("At {{interlanguage link|Tokyo Works|ja|東京工場}}.", "At Tokyo Works."),
        ("The {{ship|USS|Enterprise|CV-6}} and {{HMS|Hood}}.", "The USS Enterprise (CV-6) and HMS Hood."),
        ("It ran 3{{frac|1|2}} and {{frac|2|3|4}} miles ({{frac|1|2}}).", "It ran 3 1/2 and 2 3/4 miles (1/2)."),
        ("It has {{formatnum:1234567}} people.", "It has 1234567 people."),
        ("{{circa|1500|1600}}, {{as of|2010}}", "c. 1500 – c. 1600, as of 2010"),
        ("5.97 × 10<sup>24</sup> kg, 10{{sup|−3}}, 5{{e|6}}", "5.97 × 10^24 kg, 10^−3, 5 × 10^6"),
        ("the 19<sup>th</sup>, CO<sub>2</sub>, H{{sub|2}}O, m<sup>2</sup>", "the 19th, CO2, H2O, m2"),
    ],
)  # fmt: skip
def test_templates_are_rendered_as_text(source: str, text: str) -> None:
    """No power, unit, uncertainty, joined value or name is lost: half of it would be a wrong fact."""
    assert read_wikitext(source, ["file"]).text == text
