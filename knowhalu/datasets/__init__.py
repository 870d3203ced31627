"""Data sets with gold labels: which are known, how their files are read, and how their rows become samples."""
