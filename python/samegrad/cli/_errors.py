"""What a user can put right."""


class CommandError(Exception):
    """Something the user can put right; shown in one line."""
