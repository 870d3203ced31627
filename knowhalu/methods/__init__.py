"""How to check: each method is a conversation that ends in a verdict."""
