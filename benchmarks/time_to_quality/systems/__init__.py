"""What is compared: for each system how it prepares text, trains, and translates with one of its checkpoints."""
