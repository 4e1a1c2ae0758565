"""The exceptions that are messages to the user."""


class UserError(Exception):
    """Something the user can put right. The message names the thing and the remedy.

    It ends a command with that message instead of a traceback.
    """


class ArgumentError(UserError, ValueError):
    """An argument of the Python API that cannot be; for its callers a `ValueError`."""
