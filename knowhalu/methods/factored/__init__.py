"""Factored Verification: each claim judged alone, also against cited sources only."""
