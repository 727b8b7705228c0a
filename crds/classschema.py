"""The CustomResourceDefinition of classes, made from their models."""

from typing import Any, Final

from crds import names
from crds.providers import DEFAULT_POLICY, ProviderPolicy
from crds.scheduledmachineclass import ClassSpec
from crds.schema import CATEGORIES, MOVED, DefinedKind, definition, object_of, restrict_providers, structural

Schema = dict[str, Any]

DESCRIPTION: Final = (
    "What machines are, approved by the platform team; ScheduledMachines name it and fill in parameters."
)
COLUMNS: Final = (
    ("Bootstrap", "string", ".spec.bootstrapSpec.kind", "Kind of the bootstrap object"),
    ("Infrastructure", "string", ".spec.infrastructureSpec.kind", "Kind of the infrastructure object"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
)
WIDE_COLUMNS: Final = (("Namespaces", "string", ".spec.namespaceSelector", "Labels of the namespaces that may use it"),)


def class_definition(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The whole object, ready to be applied."""
    what = DefinedKind(
        names.CLASS_KIND,
        names.CLASS_PLURAL,
        names.CLASS_SHORT_NAME,
        COLUMNS,
        WIDE_COLUMNS,
        scope="Cluster",
        labels=MOVED,
        categories=CATEGORIES,
    )
    return definition(what, class_schema(policy))


def class_schema(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The structural schema of a class."""
    spec = {**structural(ClassSpec), "description": "What machines of the class are, and who may use it."}
    restrict_providers(spec, policy)
    return object_of(names.CLASS_KIND, DESCRIPTION, spec)
