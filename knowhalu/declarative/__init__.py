"""Questions and answers as statements, by text rules: "Who wrote Emma?" and "Jane Austen" say "Jane Austen wrote Emma."."""

from knowhalu.declarative.stating import declarative

__all__ = ["declarative"]
