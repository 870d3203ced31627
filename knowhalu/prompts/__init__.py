"""Prompts: templates and worked examples, the requests made of them, and the parsing of replies."""
