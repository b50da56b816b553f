"""A Transformer that translates: model, steps, decoding, scores."""
