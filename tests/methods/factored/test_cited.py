"""The sources that a citation refers to, and claims without their citations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.factored.citations import find_citations, matching_documents, mismatch_reason, strip_citations
from knowhalu.types import Document


def documents(*named):
    return tuple(Document(id=i, title=t, text="An abstract.") for i, t in named)


PAPERS = documents(
    ("ling2009.txt", ""), ("p2", "Benton and Donohoe (2010): Creatine and memory"), ("Smith-2011a", ""), ("Smith-2011b", ""),
    ("oneill2004", "On sleep"), ("p6", "Müller, A. 1999. Über alles"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Ling (2009)", ["ling2009.txt"]),
        ("Ling (2010)", []),
        ("Link (2009)", []),
        ("Benton (2010)", ["p2"]),
        ("Unknown and Donohoe (2010)", ["p2"]),  # one of the authors is enough: abstracts name the first only
        ("Smith (2011)", ["Smith-2011a", "Smith-2011b"]),
        ("Smith (2011b)", ["Smith-2011b"]),
        ("Smith (2011c)", ["Smith-2011a", "Smith-2011b"]),
        ("O'Neill (2004)", ["oneill2004"]),
        ("Muller (1999)", ["p6"]),
        ("Creatine (2010)", ["p2"]),
    ],
)
def test_authors_and_year_stand_in_title_or_id(text, ids):
    assert [d.id for d in matching_documents(find_citations(text)[0], PAPERS)] == ids


@pytest.mark.parametrize(
    ("named", "number", "ids"),
    [
        ([("a", ""), ("b", "")], 2, ["b"]),  # no source has a number: the place counts
        ([("a", ""), ("b", "")], 3, []),
        ([("ref-7", ""), ("ref-2", "")], 2, ["ref-2"]),
        ([("ref-7", ""), ("ref-2", "")], 1, []),  # numbers are given, so the place does not count
        ([("[3]", ""), ("x", "")], 3, ["[3]"]),
        ([("x", "[4] Ling 2009"), ("y", "5. Benton")], 5, ["y"]),
        ([("document-1", ""), ("document-2", "")], 2, ["document-2"]),
        ([("04.txt", "")], 4, ["04.txt"]),
        ([("1", ""), ("ref1", "")], 1, ["1", "ref1"]),
    ],
)
def test_a_number_is_that_of_an_id_or_title_or_else_the_place(named, number, ids):
    assert [d.id for d in matching_documents(find_citations(f"[{number}]")[0], documents(*named))] == ids


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[9]", "no source has the number 9; there are 6"),
        ("Ling (2012)", "none of the 6 sources has Ling and 2012 in its title or id; Ling is listed with 2009"),
        ("Nobody et al. (2001)", "none of the 6 sources has Nobody and 2001 in its title or id"),
    ],
)
def test_the_reason_of_a_mismatch_names_authors_year_or_number(text, said):
    assert mismatch_reason(find_citations(text)[0], PAPERS) == said


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Ling (2009) found that creatine helps.", "Creatine helps."),
        ("Ling and Benton (2009) have also shown that rats sleep [3].", "Rats sleep."),
        ("According to Ling (2009), rats sleep.", "Rats sleep."),
        ("Creatine helps (Ling, 2009; Benton, 2010).", "Creatine helps."),
        ("Creatine helps [1, 3-5], but not always [2].", "Creatine helps, but not always."),
        ("Ling (2009) compared two doses.", "The study compared two doses."),
        ("Ling (2009) and Benton (2010) compared doses.", "The studies compared doses."),
        ("The World Health Organization (2020) advises rest.", "The study advises rest."),
        ("Ling's (2009) study had 34 subjects.", "The study had 34 subjects."),
        ("Ling (2009) did not find that creatine helps.", "The study did not find that creatine helps."),
        ("Creatine helps.", "Creatine helps."),
        ("(Ling, 2009)", "(Ling, 2009)"),
        ("[1]", "[1]"),
    ],
)
def test_a_claim_without_its_citations(claim, said):
    assert strip_citations(claim) == said


PIECES = ["Ling (2009)", "(Smith, 2010)", "[1]", " found that ", "\ufffc", "a"]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=9))
def test_a_claim_without_its_citations_always_has_a_word(pieces):
    claim = "".join(pieces)
    said = strip_citations(claim)
    assert said == claim or any(c.isalpha() for c in said)
