"""Which provider objects may be created: the operator's allowlist of groups and kinds, and the kinds it never takes."""

import argparse
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

BOOTSTRAP: Final = "bootstrapSpec"
INFRASTRUCTURE: Final = "infrastructureSpec"

DEFAULT_BOOTSTRAP_GROUPS: Final = frozenset({"bootstrap.cluster.x-k8s.io", "k0smotron.io"})
DEFAULT_INFRASTRUCTURE_GROUPS: Final = frozenset({"infrastructure.cluster.x-k8s.io", "k0smotron.io"})
DEFAULT_BOOTSTRAP_KINDS: Final = ("*Config",)
DEFAULT_INFRASTRUCTURE_KINDS: Final = ("*Machine",)
DEFAULT_REFUSED_KINDS: Final = (
    *("*Template", "*List", "*Cluster", "*ControlPlane", "*Pool", "*Identity", "JoinTokenRequest"),
    "K0sControllerConfig",  # it mints join tokens of controllers
    "PooledRemoteMachine",  # an entry of a pool of hosts, not a machine
)
KIND_PATTERN: Final = "[A-Za-z0-9*]+"


@dataclass(frozen=True)
class ProviderPolicy:
    """What the operator allows in `bootstrapSpec` and `infrastructureSpec`.

    Kinds are patterns such as `*Machine`, in which `*` stands for any text; one that `refused_kinds` names is refused
    even if the envelope's own list allows it. `cluster_scoped` holds the `(group, kind)` pairs that discovery reports
    as cluster-scoped, and may grow and shrink as definitions come and go.
    """

    bootstrap_groups: frozenset[str] = DEFAULT_BOOTSTRAP_GROUPS
    infrastructure_groups: frozenset[str] = DEFAULT_INFRASTRUCTURE_GROUPS
    bootstrap_kinds: tuple[str, ...] = DEFAULT_BOOTSTRAP_KINDS
    infrastructure_kinds: tuple[str, ...] = DEFAULT_INFRASTRUCTURE_KINDS
    refused_kinds: tuple[str, ...] = DEFAULT_REFUSED_KINDS
    cluster_scoped: Container[tuple[str, str]] = frozenset()

    def groups(self, envelope: str) -> frozenset[str]:
        """The groups allowed in an envelope, `bootstrapSpec` or `infrastructureSpec`."""
        return self.bootstrap_groups if envelope == BOOTSTRAP else self.infrastructure_groups

    def kinds(self, envelope: str) -> tuple[str, ...]:
        """The patterns of kinds allowed in an envelope."""
        return self.bootstrap_kinds if envelope == BOOTSTRAP else self.infrastructure_kinds

    def allowed_kinds(self, envelope: str) -> str:
        """The refusal of a kind, which says what is allowed instead; every door uses these words."""
        refused = f", but not {', '.join(self.refused_kinds)}" if self.refused_kinds else ""
        return f"kind is not allowed here; allowed: {', '.join(self.kinds(envelope))}{refused}"

    def refuses_group(self, envelope: str, group: str) -> str | None:
        """Why the group is not allowed there, or None."""
        allowed = self.groups(envelope)
        return None if group in allowed else f"group is not allowed here; allowed: {', '.join(sorted(allowed))}"

    def refuses_kind(self, envelope: str, group: str, kind: str) -> str | None:
        """Why the kind is not allowed there, or None."""
        if not _matches(self.kinds(envelope), kind) or _matches(self.refused_kinds, kind):
            return self.allowed_kinds(envelope)
        if (group, kind) in self.cluster_scoped:
            return "is cluster-scoped; only kinds that live in a namespace may be created"
        return None


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of the same names as those of `5spot run`, for commands that work without a cluster."""
    wanted = (
        ("--bootstrap-groups", sorted(DEFAULT_BOOTSTRAP_GROUPS), "API groups allowed in bootstrapSpec"),
        ("--infrastructure-groups", sorted(DEFAULT_INFRASTRUCTURE_GROUPS), "API groups allowed in infrastructureSpec"),
        ("--bootstrap-kinds", DEFAULT_BOOTSTRAP_KINDS, "kinds allowed in bootstrapSpec, * stands for any text"),
        ("--infrastructure-kinds", DEFAULT_INFRASTRUCTURE_KINDS, "kinds allowed in infrastructureSpec"),
        ("--refused-kinds", DEFAULT_REFUSED_KINDS, "kinds refused even if the lists above allow them"),
    )
    group = parser.add_argument_group("the operator's policy", "if it is not the default; lists separated by commas")
    for flag, default, text in wanted:
        kind = _kinds if flag.endswith("-kinds") else _listed
        group.add_argument(flag, type=kind, default=tuple(default), metavar="LIST", help=text)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _kinds(text: str) -> tuple[str, ...]:
    try:
        return kind_patterns(_listed(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def kind_patterns(given: Iterable[str]) -> tuple[str, ...]:
    """Patterns of kinds as they came.

    Raises:
        ValueError: if one of them has other characters than a kind and `*`.
    """
    patterns = tuple(given)
    for pattern in patterns:
        if not re.fullmatch(KIND_PATTERN, pattern):
            raise ValueError(f"{pattern!r} is no pattern of kinds: write letters, digits and * only, such as *Machine")
    return patterns


def from_flags(arguments: argparse.Namespace) -> ProviderPolicy:
    """The policy that the flags describe."""
    return ProviderPolicy(
        bootstrap_groups=frozenset(arguments.bootstrap_groups),
        infrastructure_groups=frozenset(arguments.infrastructure_groups),
        bootstrap_kinds=arguments.bootstrap_kinds,
        infrastructure_kinds=arguments.infrastructure_kinds,
        refused_kinds=arguments.refused_kinds,
    )


def kinds_expression(patterns: Iterable[str]) -> str:
    """Patterns of kinds as one regular expression, in words that Python and the API server (RE2) both understand."""
    return f"^({'|'.join(pattern.replace('*', '.*') for pattern in patterns)})$"


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(kinds_expression(patterns))


@lru_cache(maxsize=1024)
def _matches(patterns: tuple[str, ...], kind: str) -> bool:
    return _compiled(patterns).fullmatch(kind) is not None


DEFAULT_POLICY: Final = ProviderPolicy()
