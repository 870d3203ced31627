"""All kinds of everyday cases: importing the generators registers them."""

from tests.everyday import dates, layout, numbers, tables, talk, units
from tests.everyday.cases import MAKERS, Case, Expected, Pair, case_pairs

__all__ = ["KINDS", "MODULES", "Case", "Expected", "Pair", "case_pairs"]
MODULES = (numbers, units, dates, layout, tables, talk)
KINDS = tuple(MAKERS)
