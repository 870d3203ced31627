"""The report: finished runs as one page without a network, with figures, curves, cost, and single items with their evidence."""
