"""The engine: runs many checks at once and batches their requests."""
