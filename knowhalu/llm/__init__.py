"""Doors to language models: servers, models in this process, and the replies kept on disk."""
