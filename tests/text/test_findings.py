"""What the values of a claim are found to be: which sentence opposes it, by which value or calculation, and how surely."""

import pytest

from knowhalu.text.findings import Findings, find_findings

TOWER = "The Carn tower is 41 metres high."


@pytest.mark.parametrize(
    ("claim", "near", "opposed", "differ"),
    [
        ("The Carn tower is 38 metres high.", ["The Penmor wall is 3 metres high.", TOWER], TOWER, 1.0),
        ("The Carn tower is 38 metres high.", ["The Carn tower is 41 metres high and 6 metres wide."], None, 0.5),
        ("The Carn tower cost 2.5 billion euros.", ["The Carn tower cost 2.5 million euros."], None, 2.0),
        ("The Carn mill ran for 12 years.", ["The Penmor mill burnt.", "The Carn mill ran from 1890 to 1912."], None, 1.0),
    ],
)
def test_the_sentence_that_opposes_a_claim_is_the_one_that_weighs(claim, near, opposed, differ):
    found = find_findings(claim, near, " ".join(near))
    assert (found.opposed, found.differ) == ([opposed or near[-1]], differ)


def test_nothing_opposes_what_a_sentence_as_near_confirms():
    near = [TOWER, "The Carn tower is 38 metres high."]
    found = find_findings("The Carn tower is 38 metres high.", near, " ".join(near))
    assert (found.opposed, found.differ, Findings().differ) == ([], 0.0, 0.0)


def test_of_a_sentence_with_the_one_before_the_part_with_the_value_opposes():
    near = ["The Carn tower is 41 metres high. It is old."]
    assert find_findings("The Carn tower is 38 metres high.", near, near[0]).opposed == [TOWER]


def test_a_sentence_that_only_refers_back_gives_no_second_value():
    towers = ["The Carn tower is 41 metres high.", "The Penmor tower is 36 metres high.", "Both are of brick."]
    near = [towers[0], towers[1], f"{towers[1]} {towers[2]}", towers[2]]
    found = find_findings("The Penmor tower is higher than the Carn tower.", near, " ".join(towers))
    assert found.refuted is not None and found.refuted.explanation == "36 metres < 41 metres"


@pytest.mark.parametrize(
    ("claim", "settled"),
    [
        ("The Carn mill ran for 22 years.", True),
        ("The Carn mill ran for 12 years.", False),
        ("The Carn mill ran for 22 years with 80 workers.", False),
        ("The Carn mill ran for 22 years until floods ruined its last wheel.", False),
        ("The Carn mill ran from 1890.", False),
    ],
)
def test_a_calculation_settles_a_claim_that_says_little_else(claim, settled):
    source = "The Carn mill ran from 1890 to 1912."
    assert find_findings(claim, [source], source).settled is settled


def test_a_value_that_another_value_of_the_claim_is_opposes_nothing():
    near = ["The fair earned 900 euros in May and 700 euros in June.", "The tent cost 40 euros."]
    claim = "The fair earned 900 euros in May, and the tent cost 40 euros."
    assert find_findings(claim, [near[1]], " ".join(near)).conflict is None
    assert find_findings("The tent cost 50 euros.", near, " ".join(near)).conflict is not None
