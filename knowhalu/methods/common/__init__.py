"""What several methods share: sources, evidence, labels, combination and the calibrated judgment."""
