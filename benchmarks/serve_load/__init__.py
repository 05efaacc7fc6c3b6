"""The server under load and under attack."""
