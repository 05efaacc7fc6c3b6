"""A trained model over HTTP: LibreTranslate's interface and our own. Needs the extra `serve`, by itself no torch."""
