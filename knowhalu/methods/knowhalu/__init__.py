"""KnowHalu: off-target check, step-wise queries, knowledge in two forms, judgment and aggregation."""
