"""Stage 7: next-token scores to hypotheses."""
