"""One program for each system, run in its own environment."""
