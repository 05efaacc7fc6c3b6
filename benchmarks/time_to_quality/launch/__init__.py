"""The peers' own commands, each run by the interpreter that has the peer installed."""
