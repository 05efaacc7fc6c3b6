"""Stage 3: ids to padded tensors."""
