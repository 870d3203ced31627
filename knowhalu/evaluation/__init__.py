"""Evaluation: methods beside one another on the same labelled rows, with intervals and tests."""
