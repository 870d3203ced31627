"""Revision of a response: guarded sentence by sentence, or rewritten as published."""
