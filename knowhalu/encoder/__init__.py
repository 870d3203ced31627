"""The small model's door: a BERT encoder, the verifier built on it and the embedder."""
