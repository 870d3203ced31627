"""Calibration: what is chosen on labelled rows, and how good that is on rows that it was not chosen on."""
