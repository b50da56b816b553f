"""Errors that the user can correct."""


class CommandError(Exception):
    """Something the user can put right; shown in one line."""
