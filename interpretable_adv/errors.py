"""The one exception that ends a command with a message instead of a traceback."""


class UserError(Exception):
    """Something the user can put right. The message names the thing and the remedy."""
