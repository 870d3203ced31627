"""Retrieval of evidence: dense, lexical, late-interaction, hybrid and remote search, and search in given documents."""
