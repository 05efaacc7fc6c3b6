"""The commands: parse, call a composer, format. Nothing imports this package."""
