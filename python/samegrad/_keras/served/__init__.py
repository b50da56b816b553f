"""Modules that replace Keras's own, under their names."""
