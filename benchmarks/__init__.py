"""Measurements of Dragoman beside other software, in one run: README.md says how."""
