"""The kinds of objects in requests, and their URL paths."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from crds import names

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as an API server serves it; `group` is empty for the core API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    _root: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Builds the constant part of the path once, as every request needs it."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        object.__setattr__(self, "_root", f"{prefix}/{self.version}")

    @property
    def api_version(self) -> str:
        """As written in manifests: `group/version`, or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """The name that users know: `machines.cluster.x-k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str | None = None) -> str:
        """Path of all objects, or of those in one namespace."""
        if namespace is None or not self.namespaced:
            return f"{self._root}/{self.plural}"
        return f"{self._root}/namespaces/{path_segment(namespace)}/{self.plural}"

    def item(self, name: str, namespace: str | None = None, subresource: str | None = None) -> str:
        """Path of one object, or of a subresource of it."""
        if self.namespaced and namespace is None:
            raise ValueError(f"{self.kind} {name!r} is namespaced; give its namespace")
        path = f"{self.collection(namespace)}/{path_segment(name)}"
        return f"{path}/{subresource}" if subresource else path

    def envelope(self) -> dict[str, Any]:
        """The two fields that every manifest of this kind starts with."""
        return {"apiVersion": self.api_version, "kind": self.kind}


def path_segment(text: str) -> str:
    """`text` as one segment of a URL path, so that a hostile name cannot address another object."""
    if _PLAIN.fullmatch(text):
        return text
    if text in {"", ".", ".."}:
        raise ValueError(f"{text!r} cannot be the name of an object")
    return quote(text, safe="")


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group="", version="v1", plural=plural, kind=kind, namespaced=namespaced)


CONFIG_MAPS = _core("configmaps", "ConfigMap")
NAMESPACES = _core("namespaces", "Namespace", namespaced=False)
NODES = _core("nodes", "Node", namespaced=False)
PODS = _core("pods", "Pod")
SECRETS = _core("secrets", "Secret")
SERVICE_ACCOUNTS = _core("serviceaccounts", "ServiceAccount")
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events", kind="Event")
DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
POD_DISRUPTION_BUDGETS = Resource(
    group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget"
)
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
VALIDATING_WEBHOOKS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING_WEBHOOKS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
SUBJECT_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)
SELF_SUBJECT_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", plural="selfsubjectreviews", kind="SelfSubjectReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
SCHEDULE_CALENDARS = Resource(
    group=names.GROUP, version=names.VERSION, plural=names.CALENDAR_PLURAL, kind=names.CALENDAR_KIND
)
CLUSTER_SCHEDULE_CALENDARS = Resource(
    group=names.GROUP,
    version=names.VERSION,
    plural=names.CLUSTER_CALENDAR_PLURAL,
    kind=names.CLUSTER_CALENDAR_KIND,
    namespaced=False,
)
SCHEDULE_OVERRIDES = Resource(
    group=names.GROUP, version=names.VERSION, plural=names.OVERRIDE_PLURAL, kind=names.OVERRIDE_KIND
)
SCHEDULED_MACHINE_CLASSES = Resource(
    group=names.GROUP, version=names.VERSION, plural=names.CLASS_PLURAL, kind=names.CLASS_KIND, namespaced=False
)
SCHEDULED_MACHINES = Resource(group=names.GROUP, version=names.VERSION, plural=names.PLURAL, kind=names.KIND)
