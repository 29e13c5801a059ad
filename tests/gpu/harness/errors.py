"""Owns the one exception that ends a verb before it checked anything (exit code 2)."""


class CannotRun(Exception):
    """Something that the verb cannot do without is missing. The text says what, and what helps."""
