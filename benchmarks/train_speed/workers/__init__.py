"""One program per peer, run by that peer's own interpreter; all speak through `protocol`."""
