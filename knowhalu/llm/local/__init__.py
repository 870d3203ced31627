"""A transformers model in this process that reuses the key-value states of shared prefixes."""
