"""What is raised when the input, not the code, is at fault."""


class InputError(ValueError):
    """Input that cannot be audited: the message names the file, the value and the remedy."""
