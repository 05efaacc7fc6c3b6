"""Whether what `--budget` chooses is as good as a fixed preset given the same time, on several texts."""
