"""Namespace and name of an object: all that a queue knows of it, like a request in controller-runtime."""

from typing import NamedTuple


class Key(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
