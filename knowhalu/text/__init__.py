"""Pure functions on text: sentences, entities, quantities, clauses, questions and overlap."""
