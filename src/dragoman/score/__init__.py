"""Stage 8: hypotheses to numbers."""
