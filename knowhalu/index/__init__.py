"""Indexes on disk: built, changed, verified and opened."""
