"""Stage 4: tensors to logits. The paper's model; needs torch and its own settings, nothing else."""
