"""Data sets with gold labels: their cards, the files they consist of, and the conversion of rows to samples."""
