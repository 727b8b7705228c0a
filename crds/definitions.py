"""All CustomResourceDefinitions of 5-Spot, for clusters that need every kind."""

from typing import Any

from crds.calendarschema import calendar_definitions
from crds.classschema import class_definition
from crds.overrideschema import override_definition
from crds.providers import DEFAULT_POLICY, ProviderPolicy
from crds.schema import custom_resource_definition


def all_definitions(policy: ProviderPolicy = DEFAULT_POLICY) -> tuple[dict[str, Any], ...]:
    """Ready to be applied."""
    definitions = (*calendar_definitions(), override_definition(), class_definition(policy))
    return custom_resource_definition(policy), *definitions
