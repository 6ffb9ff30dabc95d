"""How stages run: their nouns, and what units make of a batch."""
