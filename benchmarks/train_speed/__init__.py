"""How fast a Transformer trains: updates per second of Dragoman and its peers on the same batches."""
