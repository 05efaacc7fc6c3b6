"""How good a translator is after how long: BLEU against wall clock for Dragoman and for its peers' own training."""
