"""Who thinks inside a method: the small encoder, or a language model."""
