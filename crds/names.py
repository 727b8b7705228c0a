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

ANNOTATION_PAUSED: Final = "cluster.x-k8s.io/paused"
ANNOTATION_SPEC_HASH: Final = f"{GROUP}/spec-hash"
ANNOTATION_TEMPLATE: Final = f"{GROUP}/template-keys"
ANNOTATION_WINDOW_OPENS: Final = f"{GROUP}/window-opens"
ANNOTATION_CORDONED: Final = f"{GROUP}/cordoned"
ANNOTATION_APPLIED_TAINTS: Final = f"{GROUP}/applied-taints"
ANNOTATION_RECLAIM_REQUESTED: Final = f"{GROUP}/reclaim-requested"
ANNOTATION_RECLAIM_REASON: Final = f"{GROUP}/reclaim-reason"
ANNOTATION_RECLAIM_REQUESTED_AT: Final = f"{GROUP}/reclaim-requested-at"
RECLAIM_ANNOTATIONS: Final = (
    ANNOTATION_RECLAIM_REQUESTED,
    ANNOTATION_RECLAIM_REASON,
    ANNOTATION_RECLAIM_REQUESTED_AT,
)
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
