"""Weights that come with the package; no code."""
