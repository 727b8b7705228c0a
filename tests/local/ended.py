"""Waits for the end of processes that are not our children."""

import os
import select


def ended(pid: int, within: float = 10.0) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)
