"""Modules that stand in for Keras's own, under their names."""
