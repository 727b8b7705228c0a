"""Text from others, made fit to be shown: one line, nothing invisible, of bounded length. Used wherever we quote."""


def one_line(text: str, limit: int) -> str:
    """`text` on one line, without control characters, at most `limit` characters long."""
    head = text[: 4 * limit]
    if not head.isprintable():
        head = "".join(each if each.isprintable() else " " for each in head)
    line = " ".join(head.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def one_line_of_bytes(text: str, limit: int) -> str:
    """The same, where the limit counts bytes of UTF-8, as API servers do in some places."""
    line = one_line(text, limit)
    encoded = line.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - 3].decode(errors="ignore") + "…"
