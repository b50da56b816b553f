"""Foundations that do not need the engine: dtypes, structures, enums."""
