"""How long to wait before the next try; used by the watches and by the write that must not be lost."""


def backoff(attempts: int, cap: float, luck: float) -> float:
    """Doubling from 0.2 s to `cap` with full jitter in the upper half; `luck` is random in [0, 1)."""
    ceiling = min(cap, 0.2 * 2.0 ** min(max(attempts - 1, 0), 16))
    return ceiling * (0.5 + luck / 2)
