"""Citations in text: which words are one, their offsets, and that the parser accepts any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.factored.citations import find_citations

AUTHOR_YEAR = [
    ("Ling (2009) found it.", [("Ling (2009)", ("Ling",), "2009")]),
    ("As Ling and Benton (2009) show, it is so.", [("Ling and Benton (2009)", ("Ling", "Benton"), "2009")]),
    ("Ling & Benton (2009a) agree.", [("Ling & Benton (2009a)", ("Ling", "Benton"), "2009a")]),
    ("Ling, Benton, and Smith (2010) met.", [("Ling, Benton, and Smith (2010)", ("Ling", "Benton", "Smith"), "2010")]),
    ("Ling et al. (2009) disagree.", [("Ling et al. (2009)", ("Ling",), "2009")]),
    ("Recently Ling and colleagues (2009) wrote.", [("Ling and colleagues (2009)", ("Ling",), "2009")]),
    ("van der Berg (2011) said so.", [("van der Berg (2011)", ("van der Berg",), "2011")]),
    ("In Müller-Lüdenscheidt (1999) it is.", [("Müller-Lüdenscheidt (1999)", ("Müller-Lüdenscheidt",), "1999")]),
    ("Ling's (2009) study is small.", [("Ling's (2009)", ("Ling",), "2009")]),
    ("The Health Board (2020) says.", [("Health Board (2020)", ("Health Board",), "2020")]),
    ("The WHO (2020) says.", [("WHO (2020)", ("WHO",), "2020")]),
    ("Ling (2009, p. 4) says.", [("Ling (2009, p. 4)", ("Ling",), "2009")]),
    ("Ling (2009, 2011) says.", [("Ling (2009, 2011)", ("Ling",), "2009"), ("Ling (2009, 2011)", ("Ling",), "2011")]),
    ("Ling, J. (2009) says.", [("Ling, J. (2009)", ("Ling", "J."), "2009")]),
    ("Paris is big. Ling (2009) says.", [("Ling (2009)", ("Ling",), "2009")]),
    ("It helps (Ling, 2009).", [("Ling, 2009", ("Ling",), "2009")]),
    ("It helps (Ling 2009).", [("Ling 2009", ("Ling",), "2009")]),
    ("It helps (see Ling & Benton, 2009).", [("Ling & Benton, 2009", ("Ling", "Benton"), "2009")]),
    ("It helps (e.g., Ling et al., 2009, p. 3).", [("Ling et al., 2009", ("Ling",), "2009")]),
    ("It helps (Ling, Benton, & Smith, 2009).", [("Ling, Benton, & Smith, 2009", ("Ling", "Benton", "Smith"), "2009")]),
    ("So (Ling, 2009; Smith et al., 2010).", [("Ling, 2009", ("Ling",), "2009"), ("Smith et al., 2010", ("Smith",), "2010")]),
    ("So (Ling 2009, Benton 2010 and Smith, 2011).",
     [("Ling 2009", ("Ling",), "2009"), ("Benton 2010", ("Benton",), "2010"), ("Smith, 2011", ("Smith",), "2011")]),
    ("So (Ling, 2010a, 2010b).", [("Ling, 2010a, 2010b", ("Ling",), "2010a"), ("Ling, 2010a, 2010b", ("Ling",), "2010b")]),
    ("So (WHO, 2020, p. 4).", [("WHO, 2020", ("WHO",), "2020")]),
]  # fmt: skip
NUMBERS = [
    ("It helps [1].", [("1", 1)]),
    ("It helps [1, 3-5].", [("1", 1), ("3-5", 3), ("3-5", 4), ("3-5", 5)]),
    ("It helps [2; 4].", [("2", 2), ("4", 4)]),
    ("It helps [3\u20135][7].", [("3\u20135", 3), ("3\u20135", 4), ("3\u20135", 5), ("7", 7)]),
    ("It helps [5-3].", [("5-3", 3), ("5-3", 5)]),
    ("It helps [1-99].", [("1-99", 1), ("1-99", 99)]),
]
NONE = [
    "It was built in 1998.", "It opened (in 1998).", "It (founded 1997) is.", "In March (2009) it rained.", "See Table (2009).",
    "We had 45 rats (n = 45, 2009).", "The report (2009) is long.", "a[0] is x[1990-2000]", "[x] and [a, b]", "(ibid.)", "()",
    "It did (June 2009).", "Nobody (1200) knows.",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), AUTHOR_YEAR, ids=[t for t, _ in AUTHOR_YEAR])
def test_authors_and_year(text, expected):
    assert [(text[c.start : c.end], c.names, c.year) for c in find_citations(text)] == expected


@pytest.mark.parametrize(("text", "expected"), NUMBERS, ids=[t for t, _ in NUMBERS])
def test_numbers(text, expected):
    assert [(text[c.start : c.end], c.number) for c in find_citations(text)] == expected


@pytest.mark.parametrize("text", NONE)
def test_text_that_resembles_a_citation_is_none(text):
    assert find_citations(text) == []


def test_both_styles_come_in_the_order_of_the_text():
    assert [c.style for c in find_citations("Ling (2009) [2] and others [1] (Smith, 2010)")] == [
        "author-year", "number", "number", "author-year",
    ]  # fmt: skip


PIECES = [
    "Ling", " (2009)", "(", ")", "[1, 3-5]", "[", "]", ";", ", ", " & ", " and ", "et al.", "2010a", "see ", "van der ", "'s",
    "Smith", "[999]", "\n", "É", "\U0001f600",
]  # fmt: skip
pieces = st.one_of(st.sampled_from(PIECES), st.text(max_size=4))
texts = st.one_of(st.text(max_size=200), st.lists(pieces, max_size=40).map("".join))


@given(texts)
def test_citations_of_any_text_have_exact_offsets(text):
    for citation in find_citations(text):
        stretch = text[citation.start : citation.end]
        assert 0 <= citation.opens <= citation.start < citation.end <= citation.closes <= len(text)
        if citation.style == "number":
            assert str(citation.number) in stretch or "-" in stretch or "\u2013" in stretch or "\u2014" in stretch
        else:
            assert citation.year in stretch and citation.names and all(name in stretch for name in citation.names)


@pytest.mark.parametrize("piece", ["(Ling, ", "[1, ", "Ling and ", "(2009) ", "Ling, Benton & ", "((", "see ", "; 2009"])
def test_long_texts_of_one_piece_are_read(piece):
    find_citations(piece * 3000)
    find_citations(f"({piece * 60}2009)" * 50)
