"""Stage 6: weights to disk and back."""
