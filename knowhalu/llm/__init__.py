"""Doors to language models: a server, vLLM or transformers in this process."""
