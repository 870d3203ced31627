"""All kinds of everyday cases: importing the generators registers them."""

from tests.everyday import answers, dates, languages, layout, numbers, relations, tables, talk, units
from tests.everyday.cases import MAKERS, Case, Expected, Pair, case_pairs

__all__ = ["KINDS", "MODULES", "Case", "Expected", "Pair", "case_pairs"]
MODULES = (numbers, units, dates, layout, tables, talk, languages, relations, answers)
KINDS = tuple(MAKERS)
