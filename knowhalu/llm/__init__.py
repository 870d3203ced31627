"""Doors to language models: a server, an engine in process."""
