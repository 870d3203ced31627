"""Exchanged roles: the same verb between the same names, the other way round."""

import pytest

from knowhalu.text.roles import find_exchange


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
