"""Indexes on disk: build, change, verify and open them."""
