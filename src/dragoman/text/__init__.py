"""Stage 1: files to clean sentence pairs."""
