"""Stage 2: text to ids and back."""
