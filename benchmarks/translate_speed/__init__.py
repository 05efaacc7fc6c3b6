"""How fast a trained model translates: Dragoman and others with the very same weights on the same text."""
