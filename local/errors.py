"""The one exception that the throw-away control plane raises for things a person has to know about."""


class LocalError(Exception):
    """Something about the surroundings is wrong; the message says what, where and what to do, ready to be printed."""


class NoNodeError(LocalError):
    """This machine lacks what a real node needs, and cannot get it; tests that need one are skipped."""
