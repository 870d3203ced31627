"""Files: rows, records, compression, the journal of a batch, and atomic writes."""
