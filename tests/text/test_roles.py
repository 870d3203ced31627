"""Roles of two participants: exchanged, or the same said from the other side."""

import pytest

from knowhalu.text.roles import find_converse, find_exchange


@pytest.mark.parametrize(
    ("claim", "source", "exchanged"),
    [
        ("Brandt Tools sued Keller Motors over the patent.", "Keller Motors sued Brandt Tools over the patent.", True),
        ("Keller Motors was sued by Brandt Tools.", "Keller Motors sued Brandt Tools.", True),
        ("Keller Motors sued Brandt Tools.", "Keller Motors was sued by Brandt Tools.", True),
        ("Brandt Tools was sued by Keller Motors.", "Keller Motors sued Brandt Tools.", False),
        ("Keller Motors sued Brandt Tools.", "Keller Motors sued Brandt Tools in 1990.", False),
        ("Greta Sommer taught Tom Arden.", "Tom Arden taught Greta Sommer, and Greta Sommer taught Tom Arden.", False),
        ("Greta Sommer married Tom Arden.", "Tom Arden married Greta Sommer.", False),
        ("Greta Sommer taught Tom Arden.", "Tom Arden praised Greta Sommer.", False),
        ("Greta Sommer taught Tom Arden.", "Tom Arden and Greta Sommer taught.", False),
        ("Lyon is larger than Ulm.", "Ulm is larger than Lyon.", True),
        ("Greta Sommer wrote to Tom Arden.", "Tom Arden wrote to Greta Sommer.", True),
    ],
)
def test_only_the_same_verb_between_exchanged_names_counts(claim, source, exchanged):
    assert find_exchange(claim, [source]) == (source if exchanged else None)


@pytest.mark.parametrize(
    ("source", "same", "exchanged"),
    [
        ("Vera Holt beat Ada Quist in the final.", "Ada Quist was beaten by Vera Holt.", "Vera Holt was beaten by Ada Quist."),
        (
            "Ada Quist admired Vera Holt, but never met her.",
            "Vera Holt was admired by Ada Quist.",
            "Vera Holt admired Ada Quist.",
        ),
        (
            "The bank lent the farm 5,000 euros.",
            "The farm borrowed 5,000 euros from the bank.",
            "The bank borrowed 5,000 euros from the farm.",
        ),
        ("The nurse called the doctor.", "The doctor was called by the nurse.", "The doctor called the nurse."),
        (
            "Vera Holt sold the barn to Ada Quist.",
            "Ada Quist bought the barn from Vera Holt.",
            "Ada Quist sold the barn to Vera Holt.",
        ),
        ("Vera Holt lent Ada Quist a tent.", "Ada Quist borrowed a tent from Vera Holt.", "Ada Quist lent Vera Holt a tent."),
        ("Vera Holt taught Ada Quist.", "Ada Quist learned from Vera Holt.", "Vera Holt learned from Ada Quist."),
        ("Vera Holt lost to Ada Quist.", "Ada Quist won against Vera Holt.", "Vera Holt won against Ada Quist."),
        (
            "Vera Holt is the mother of Ada Quist.",
            "Ada Quist is the daughter of Vera Holt.",
            "Ada Quist is the mother of Vera Holt.",
        ),
        ("Vera Holt reports to Ada Quist.", "Ada Quist is Vera Holt's boss.", "Vera Holt is Ada Quist's boss."),
        ("Ulm is larger than Hof.", "Hof is smaller than Ulm.", "Hof is larger than Ulm."),
        ("The bus costs less than the train.", "The train costs more than the bus.", "The bus costs more than the train."),
        ("Tin conducts heat better than lead.", "Lead conducts heat worse than tin.", "Lead conducts heat better than tin."),
        (
            "The strike began before the election.",
            "The election came after the strike began.",
            "The strike began after the election.",
        ),
        ("Ulm lies north of Hof.", "Hof lies south of Ulm.", "Hof lies north of Ulm."),
        ("Speed is distance divided by time.", None, "Speed is time divided by distance."),
        ("Profit is revenue minus costs.", None, "Profit is costs minus revenue."),
    ],
)
def test_what_is_said_from_the_other_side_is_confirmed_and_never_called_exchanged(source, same, exchanged):
    assert find_exchange(exchanged, [source]) and not find_converse(exchanged, [source])
    assert same is None or (find_converse(same, [source]) and not find_exchange(same, [source]))


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Ada Quist was not beaten by Vera Holt.", "Vera Holt beat Ada Quist."),
        ("Ada Quist was born before Vera Holt died.", "Vera Holt was born before Ada Quist died."),
        ("Hof was named after Ulm.", "Ulm was built after Hof."),
        ("Ada Quist asked Vera Holt.", "Vera Holt asked Ada Quist."),
        ("Ada Quist praised the plan of Vera Holt.", "Vera Holt presented the plan that Ada Quist praised."),
    ],
)
def test_nothing_is_called_exchanged_where_it_may_hold(claim, source):
    assert not find_exchange(claim, [source])


def test_a_detail_that_the_source_lacks_is_not_confirmed():
    assert not find_converse("Ada Quist was beaten by Vera Holt in Rome.", ["Vera Holt beat Ada Quist."])
