"""CoNLI: natural language inference by sentence, then by entity."""
