"""Which provider objects may be created: the operator's allowlist and the kinds that reach further than a machine."""

import argparse
from collections.abc import Container
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

BOOTSTRAP: Final = "bootstrapSpec"
INFRASTRUCTURE: Final = "infrastructureSpec"

DEFAULT_BOOTSTRAP_GROUPS: Final = frozenset({"bootstrap.cluster.x-k8s.io", "k0smotron.io"})
DEFAULT_INFRASTRUCTURE_GROUPS: Final = frozenset({"infrastructure.cluster.x-k8s.io", "k0smotron.io"})
KIND_MAX: Final = 256
"""Longer ones are no kinds; their syntax is refused elsewhere."""
DEFAULT_REFUSED_KINDS: Final = ("*Template", "*List", "*Cluster", "*ControlPlane", "JoinTokenRequest")


@dataclass(frozen=True)
class ProviderPolicy:
    """What the operator allows in `bootstrapSpec` and `infrastructureSpec`.

    `refused_kinds` are patterns such as `*Template`; `cluster_scoped` holds the `(group, kind)` pairs that discovery
    reports as cluster-scoped, and may grow and shrink as definitions come and go.
    """

    bootstrap_groups: frozenset[str] = DEFAULT_BOOTSTRAP_GROUPS
    infrastructure_groups: frozenset[str] = DEFAULT_INFRASTRUCTURE_GROUPS
    refused_kinds: tuple[str, ...] = DEFAULT_REFUSED_KINDS
    cluster_scoped: Container[tuple[str, str]] = frozenset()

    def groups(self, envelope: str) -> frozenset[str]:
        """The groups allowed in an envelope, `bootstrapSpec` or `infrastructureSpec`."""
        return self.bootstrap_groups if envelope == BOOTSTRAP else self.infrastructure_groups

    def refuses_group(self, envelope: str, group: str) -> str | None:
        """Why the group is not allowed there, or None."""
        allowed = self.groups(envelope)
        return None if group in allowed else f"group is not allowed here; allowed: {', '.join(sorted(allowed))}"

    def refuses_kind(self, group: str, kind: str) -> str | None:
        """Why the kind is not allowed, or None."""
        pattern = _matching(self.refused_kinds, kind[:KIND_MAX])
        if pattern is not None:
            return f"kinds like {pattern} are refused: only a machine's own objects may be created"
        if (group, kind) in self.cluster_scoped:
            return "is cluster-scoped; only kinds that live in a namespace may be created"
        return None


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the same names as those of `5spot run`, for commands that work without a cluster."""
    wanted = (
        ("--bootstrap-groups", sorted(DEFAULT_BOOTSTRAP_GROUPS), "API groups allowed in bootstrapSpec"),
        ("--infrastructure-groups", sorted(DEFAULT_INFRASTRUCTURE_GROUPS), "API groups allowed in infrastructureSpec"),
        ("--refused-kinds", DEFAULT_REFUSED_KINDS, "kinds refused within those groups, * stands for any text"),
    )
    group = parser.add_argument_group("the operator's policy", "if it is not the default; lists separated by commas")
    for flag, default, text in wanted:
        group.add_argument(flag, type=_listed, default=tuple(default), metavar="LIST", help=text)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def from_flags(arguments: argparse.Namespace) -> ProviderPolicy:
    """The policy that the flags describe."""
    return ProviderPolicy(
        bootstrap_groups=frozenset(arguments.bootstrap_groups),
        infrastructure_groups=frozenset(arguments.infrastructure_groups),
        refused_kinds=arguments.refused_kinds,
    )


@lru_cache(maxsize=1024)
def _matching(patterns: tuple[str, ...], kind: str) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(kind, pattern)), None)


DEFAULT_POLICY: Final = ProviderPolicy()
