"""The modules of rich that Keras prints tables with, under one name: loaded when a table is."""

from rich import console, markup, table

__all__ = ["console", "markup", "table"]
