"""The training pass on a processor: only words, no padding, and as few passes over memory as can be.

What it computes is `model/`'s forward pass, to the last digits of float32; tests hold it to that.
"""
