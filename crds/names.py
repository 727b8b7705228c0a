"""Every name that users, Cluster API or the agent rely on, in one place.

Plain strings and no imports: the node-side agent reads this module too and must stay light.
"""

from typing import Final

GROUP: Final = "5spot.finos.org"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "ScheduledMachine"
PLURAL: Final = "scheduledmachines"
SINGULAR: Final = "scheduledmachine"
SHORT_NAME: Final = "sm"

CALENDAR_KIND: Final = "ScheduleCalendar"
CALENDAR_PLURAL: Final = "schedulecalendars"
CALENDAR_SHORT_NAME: Final = "scal"
CLUSTER_CALENDAR_KIND: Final = "ClusterScheduleCalendar"
CLUSTER_CALENDAR_PLURAL: Final = "clusterschedulecalendars"
CLUSTER_CALENDAR_SHORT_NAME: Final = "cscal"

CLASS_KIND: Final = "ScheduledMachineClass"
CLASS_PLURAL: Final = "scheduledmachineclasses"
CLASS_SHORT_NAME: Final = "smc"
LABEL_TENANCY: Final = f"{GROUP}/tenancy"
TENANCY_CLASSES: Final = "classes"
"""The value of that label on a namespace whose ScheduledMachines all have to name a class."""

OVERRIDE_KIND: Final = "ScheduleOverride"
OVERRIDE_PLURAL: Final = "scheduleoverrides"
OVERRIDE_SHORT_NAME: Final = "sov"
OVERRIDE_VERB: Final = "override"
"""What RBAC has to allow on each ScheduledMachine that an override names, or on all of them for a selector."""

FINALIZER: Final = f"{GROUP}/scheduledmachine"
FIELD_MANAGER: Final = "5spot-controller"
TAINT_FIELD_MANAGER: Final = "5spot-controller-node-taints"
AGENT_FIELD_MANAGER: Final = "5spot-reclaim-agent"

LABEL_OWNER: Final = f"{GROUP}/scheduled-machine"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "5spot"
LABEL_CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
LABEL_RECLAIM_AGENT: Final = f"{GROUP}/reclaim-agent"
RECLAIM_AGENT_ENABLED: Final = "enabled"

CLOCK_EXTENSION: Final = f"{GROUP}/clock"
"""In a context of a kubeconfig: the simulated clock of the operator there; only a local control plane has one."""

ANNOTATION_PAUSED: Final = "cluster.x-k8s.io/paused"
ANNOTATION_SPEC_HASH: Final = f"{GROUP}/spec-hash"
ANNOTATION_TEMPLATE: Final = f"{GROUP}/template-keys"
ANNOTATION_WINDOW_OPENS: Final = f"{GROUP}/window-opens"
ANNOTATION_CORDONED: Final = f"{GROUP}/cordoned"
ANNOTATION_CLOSES_AT: Final = f"{GROUP}/closes-at"
"""On a Node: when the window closes after which the machine leaves."""
ANNOTATION_APPLIED_TAINTS: Final = f"{GROUP}/applied-taints"
ANNOTATION_RECLAIM_REQUESTED: Final = f"{GROUP}/reclaim-requested"
ANNOTATION_RECLAIM_REASON: Final = f"{GROUP}/reclaim-reason"
ANNOTATION_RECLAIM_REQUESTED_AT: Final = f"{GROUP}/reclaim-requested-at"
RECLAIM_ANNOTATIONS: Final = (
    ANNOTATION_RECLAIM_REQUESTED,
    ANNOTATION_RECLAIM_REASON,
    ANNOTATION_RECLAIM_REQUESTED_AT,
)
ANNOTATION_RECLAIM_UNACKNOWLEDGED: Final = f"{GROUP}/reclaim-unacknowledged"
"""On a ScheduledMachine: when a reclaim took it out of service, to which it does not return before this is removed."""
ANNOTATION_KEEP: Final = f"{GROUP}/keep"
"""On an override: the controller does not delete it a day after its end."""
ANNOTATION_MAX_PROVISIONING: Final = f"{GROUP}/max-provisioning"
ANNOTATION_MAX_DRAINING: Final = f"{GROUP}/max-draining"
"""On a Cluster: how many of its machines are provisioned, or drained, at a time."""
ANNOTATION_DRY_RUN: Final = f"{GROUP}/dry-run"
ANNOTATION_HOURLY_COST: Final = f"{GROUP}/hourly-cost"
"""What an hour of the host costs, a number in any currency, for `5spot report`."""
ANNOTATION_ROTATE: Final = f"{GROUP}/rotate-certificates"
ANNOTATION_EXCLUDE_DRAIN: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
ANNOTATION_EXCLUDE_VOLUME_DETACH: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"

RECLAIM_NAMESPACE: Final = "5spot-system"
RECLAIM_DAEMON_SET: Final = "5spot-reclaim-agent"
LABEL_NAME: Final = "app.kubernetes.io/name"
RECLAIM_CONFIG_PREFIX: Final = "reclaim-agent-"
RECLAIM_CONFIG_KEY: Final = "killIfCommands"

CAPI_GROUP: Final = "cluster.x-k8s.io"
KUBECONFIG_SECRET_SUFFIX: Final = "-kubeconfig"  # noqa: S105 - the name of a thing, not the thing
KUBECONFIG_SECRET_TYPE: Final = "cluster.x-k8s.io/secret"  # noqa: S105
KUBECONFIG_SECRET_KEY: Final = "value"  # noqa: S105

MACHINE_SUFFIX: Final = "-machine"
BOOTSTRAP_SUFFIX: Final = "-bootstrap"
INFRASTRUCTURE_SUFFIX: Final = "-infra"

VALIDATE_PATH: Final = "/validate-5spot-finos-org-v1alpha1-scheduledmachine"
MUTATE_PATH: Final = "/mutate-5spot-finos-org-v1alpha1-scheduledmachine"
VALIDATE_CALENDAR_PATH: Final = "/validate-5spot-finos-org-v1alpha1-schedulecalendar"
VALIDATE_CLUSTER_CALENDAR_PATH: Final = "/validate-5spot-finos-org-v1alpha1-clusterschedulecalendar"
VALIDATE_OVERRIDE_PATH: Final = "/validate-5spot-finos-org-v1alpha1-scheduleoverride"
MUTATE_OVERRIDE_PATH: Final = "/mutate-5spot-finos-org-v1alpha1-scheduleoverride"
VALIDATE_CLASS_PATH: Final = "/validate-5spot-finos-org-v1alpha1-scheduledmachineclass"
