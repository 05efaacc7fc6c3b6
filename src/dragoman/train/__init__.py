"""Stage 5: logits to better weights."""
