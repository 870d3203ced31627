"""Read documents of any format as a stream of records."""
