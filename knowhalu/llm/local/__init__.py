"""A transformers model in this process, with key-value states of shared prefixes kept."""
