"""The engine: drives many checks at once and batches their requests."""
