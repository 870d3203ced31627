"""Training of the verifier: rows, edits, fixed-shape batches, the loop and the model card."""
