"""What ends a plan early although nothing failed."""


class ChangedMeanwhile(Exception):
    """An object changed between the observation and the write; the next pass decides again."""
