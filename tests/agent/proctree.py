"""Process tables as directories, as they were recorded on real hosts."""

from pathlib import Path

HOST_CGROUP = "0::/user.slice/user-1000.slice/session-2.scope\n"


def add(
    root: Path,
    pid: int,
    comm: str | bytes,
    *cmdline: str | bytes,
    parent: int = 1,
    flags: int = 0x400000,
    state: str = "S",
    started: int = 100,
    cgroup: str = HOST_CGROUP,
) -> Path:
    """One process. The stat line is as the kernel writes it, with the name unescaped in parentheses."""
    folder = root / str(pid)
    folder.mkdir(parents=True)
    name = as_bytes(comm)
    (folder / "comm").write_bytes(name + b"\n")
    (folder / "cmdline").write_bytes(b"".join(as_bytes(part) + b"\0" for part in cmdline))
    fields = f"{state} {parent} 10 10 0 -1 {flags} 120 0 0 0 1 2 0 0 20 0 1 0 {started} 3133440 385 0"
    (folder / "stat").write_bytes(str(pid).encode() + b" (" + name + b") " + fields.encode() + b"\n")
    (folder / "cgroup").write_text(cgroup)
    return folder


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
