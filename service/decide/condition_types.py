"""Phases, condition types, the reasons that each type can have, and the reasons of Events, as the docs list them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from crds.status import ConditionStatus, Phase
from service.decide.reasons import DRY_RUN_REASONS, Reason

PHASES: Final = {
    Phase.PENDING: "A machine is wanted, and not all three objects exist yet; the message says why.",
    Phase.ACTIVE: "Bootstrap object, infrastructure object and Machine exist; `Ready` says whether the Node is Ready.",
    Phase.SHUTTING_DOWN: "The controller drains the Node or waits for its turn to, or the Machine is being deleted.",
    Phase.INACTIVE: "No machine is wanted, and no object exists.",
    Phase.DISABLED: "`spec.schedule.enabled` is false; a machine that runs keeps running.",
    Phase.TERMINATED: "`spec.killSwitch` is true; the reason is `Terminating` until all objects are gone.",
    Phase.EMERGENCY_REMOVE: "The host is being returned to its owner.",
    Phase.ERROR: "A person should look at it; the message says why.",
}


class ConditionType(StrEnum):
    """The aspects of a ScheduledMachine's state that `status.conditions` reports, in the order of the docs."""

    about: str

    def __new__(cls, text: str, about: str) -> Self:
        """A member with what it is about."""
        member = str.__new__(cls, text)
        member._value_ = text
        member.about = about
        return member

    READY = (
        "Ready",
        "True while the phase is Active, the Node is Ready and nothing is wrong. The reason always says what is going "
        "on. The provider's own word can be a reason, too, see `MachineFailed`.",
    )
    SCHEDULED = "Scheduled", "True while the schedule has a window open, whatever overrides and leads say."
    OVERRIDDEN = (
        "Overridden",
        "Present while an override is in force. True if it decides about the machine, False if something else does.",
    )
    MACHINE_READY = (
        "MachineReady",
        "True while the Cluster API Machine runs. The provider's own word can be a reason, too, see `MachineFailed`.",
    )
    REFERENCES_VALID = (
        "ReferencesValid",
        "True while all that the spec refers to exists and is accepted; Unknown while Cluster API is not installed.",
    )
    NODE_TAINTED = (
        "NodeTainted",
        "Present if `spec.nodeTaints` declares taints or the controller has taints to remove, and no edit of them "
        "waits. The controller leaves taints alone until the Node is Ready, while the schedule is disabled or paused, "
        "during a shutdown, and while the spec is invalid. See [Taints](../taints.md).",
    )
    UP_TO_DATE = "UpToDate", "Present while a Machine exists."
    WORKLOAD_CLUSTER_REACHABLE = (
        "WorkloadClusterReachable",
        "Present while a Node is expected or seen. The controller connects with the kubeconfig in Secret "
        "`<clusterName>-kubeconfig`.",
    )
    DRAINED = (
        "Drained",
        "Present while a machine is removed whose Node is, or was, drained. The message names the pods that the "
        "controller waits for.",
    )
    RECLAIM_AGENT_READY = (
        "ReclaimAgentReady",
        "Present with `spec.killIfCommands`. See [the agent's page](../emergency-reclaim-agent.md#is-the-agent-there).",
    )
    PAUSED = "Paused", "Present during a pause."
    DRY_RUN = (
        "DryRun",
        "Present during a dry run that covers the object at present. The reason says what the controller would do.",
    )
    HOST_CONFLICT = "HostConflict", "Present while another ScheduledMachine needs the same host."
    CAPI_AVAILABLE = "CAPIAvailable", "Present while Cluster API is not installed."


_CONTRADICTIONS: Final = (Reason.PROVIDER_ID_CHANGED, Reason.NODE_REF_CHANGED, Reason.NODE_OF_ANOTHER_HOST)
_REFERENCES: Final = (
    Reason.CLUSTER_NOT_FOUND,
    Reason.CLUSTER_DELETING,
    Reason.FOREIGN_OBJECT,
    Reason.INVALID_SPEC,
    Reason.CALENDAR_NOT_FOUND,
    Reason.CALENDAR_INVALID,
    Reason.CLASS_NOT_FOUND,
    Reason.CLASS_INVALID,
    Reason.CLASS_NOT_ALLOWED,
    Reason.PROVIDER_NOT_FOUND,
    Reason.PROVIDER_REJECTED,
)

REASONS_OF: Final[Mapping[ConditionType, Mapping[ConditionStatus, tuple[Reason, ...]]]] = {
    ConditionType.READY: {
        "True": (
            Reason.MACHINE_RUNNING,
            Reason.WAITING_FOR_PROVIDER,
            Reason.PAUSED,
            Reason.DELETION_PAUSED,
            Reason.WOULD_DELETE,
            Reason.WOULD_CHANGE,
        ),
        "False": (
            Reason.MACHINE_PROVISIONING,
            Reason.WAITING_FOR_NODE,
            Reason.NODE_NOT_READY,
            Reason.NOT_READY_IN_TIME,
            Reason.WAITING_FOR_PREVIOUS_MACHINE,
            Reason.WAITING_FOR_PROVIDER,
            Reason.WAITING_FOR_TURN,
            Reason.WOULD_CREATE,
            Reason.WOULD_DELETE,
            Reason.WOULD_CHANGE,
            Reason.MACHINE_GONE,
            Reason.OUTSIDE_SCHEDULE,
            Reason.WINDOW_SKIPPED,
            Reason.DRAINING,
            Reason.DRAIN_TIMED_OUT,
            Reason.DELETING_MACHINE,
            Reason.REMOVING_OBJECTS,
            Reason.DELETED,
            Reason.RELEASED,
            Reason.FINALIZER_RELEASED,
            Reason.PAUSED,
            Reason.DELETION_PAUSED,
            Reason.DISABLED,
            Reason.KILL_SWITCH,
            Reason.TERMINATING,
            Reason.EMERGENCY_RECLAIM,
            Reason.RECLAIM_NOT_ACKNOWLEDGED,
            Reason.CAPI_NOT_INSTALLED,
            *_REFERENCES,
            Reason.KIND_NOT_SERVED,
            Reason.QUOTA_EXCEEDED,
            Reason.HOST_CONFLICT,
            Reason.WORKLOAD_CLUSTER_UNREACHABLE,
            Reason.INFRASTRUCTURE_GONE,
            Reason.MACHINE_FAILED,
            Reason.SPEC_EDITED,
            Reason.REMEDIATING,
            Reason.REMEDIATION_PAUSED,
            *_CONTRADICTIONS,
            Reason.NAMESPACE_TERMINATING,
            Reason.FORBIDDEN,
            Reason.UNAUTHORIZED,
            Reason.REJECTED,
            Reason.INVALID,
            Reason.API_UNAVAILABLE,
        ),
    },
    ConditionType.SCHEDULED: {
        "True": (Reason.SCHEDULE_ACTIVE,),
        "False": (
            Reason.OUTSIDE_SCHEDULE,
            Reason.SCHEDULE_DISABLED,
            Reason.EMERGENCY_RECLAIM,
            Reason.RECLAIM_NOT_ACKNOWLEDGED,
        ),
        "Unknown": (Reason.INVALID_SCHEDULE,),
    },
    ConditionType.OVERRIDDEN: {
        "True": (Reason.OVERRIDE_OPEN, Reason.OVERRIDE_CLOSED, Reason.OVERRIDE_SCHEDULED),
        "False": (Reason.OVERRIDE_OUTRANKED,),
    },
    ConditionType.MACHINE_READY: {
        "True": (Reason.MACHINE_READY,),
        "False": (
            Reason.NO_MACHINE,
            Reason.MACHINE_PROVISIONING,
            Reason.MACHINE_PROVISIONED,
            Reason.MACHINE_DELETING,
            Reason.INFRASTRUCTURE_GONE,
            Reason.MACHINE_FAILED,
            *_CONTRADICTIONS,
        ),
        "Unknown": (Reason.CAPI_NOT_INSTALLED,),
    },
    ConditionType.REFERENCES_VALID: {
        "True": (Reason.REFERENCES_VALID,),
        "False": _REFERENCES,
        "Unknown": (Reason.CAPI_NOT_INSTALLED,),
    },
    ConditionType.NODE_TAINTED: {
        "True": (Reason.APPLIED,),
        "False": (Reason.NODE_NOT_READY, Reason.TAINT_OWNERSHIP_CONFLICT, Reason.PATCH_FAILED),
        "Unknown": (Reason.NO_NODE_YET,),
    },
    ConditionType.UP_TO_DATE: {
        "True": (Reason.UP_TO_DATE,),
        "False": (Reason.APPLIES_AT_NEXT_CREATION, Reason.PROVIDER_SPEC_CHANGED),
    },
    ConditionType.WORKLOAD_CLUSTER_REACHABLE: {
        "True": (Reason.REACHABLE,),
        "False": (
            Reason.CONNECTING,
            Reason.KUBECONFIG_NOT_FOUND,
            Reason.KUBECONFIG_REFUSED,
            Reason.NO_ANSWER,
            Reason.UNAUTHORIZED,
            Reason.FORBIDDEN,
            Reason.NOT_FOUND,
            Reason.REJECTED,
            Reason.INVALID,
            Reason.API_UNAVAILABLE,
            Reason.NODE_UNREADABLE,
            Reason.PODS_NOT_LISTED,
            Reason.NO_NODE,
            Reason.NO_CLUSTER,
            Reason.CONNECTION_BROKEN,
        ),
    },
    ConditionType.DRAINED: {
        "True": (Reason.NODE_DRAINED,),
        "False": (Reason.DRAINING, Reason.DRAIN_BLOCKED, Reason.DRAIN_TIMED_OUT),
    },
    ConditionType.RECLAIM_AGENT_READY: {
        "True": (Reason.AGENT_READY,),
        "False": (
            Reason.AGENT_NAMESPACE_MISSING,
            Reason.AGENT_DAEMON_SET_MISSING,
            Reason.AGENT_NOT_READY,
            Reason.AGENT_NOT_SEEN,
            Reason.NOT_EQUIPPED,
        ),
        "Unknown": (Reason.NO_NODE_YET,),
    },
    ConditionType.PAUSED: {"True": (Reason.PAUSED,)},
    ConditionType.DRY_RUN: {"True": (*DRY_RUN_REASONS, Reason.NOTHING_TO_DO)},
    ConditionType.HOST_CONFLICT: {"True": (Reason.HOST_CONFLICT,)},
    ConditionType.CAPI_AVAILABLE: {"False": (Reason.CAPI_NOT_INSTALLED,)},
}

EVENTS: Final = (
    Reason.SCHEDULE_ACTIVATED,
    Reason.SCHEDULE_DEACTIVATED,
    Reason.OVERRIDE_BEGAN,
    Reason.OVERRIDE_ENDED,
    Reason.MACHINE_CREATED,
    Reason.OBJECT_CREATED,
    Reason.MACHINE_READY,
    Reason.NOT_READY_IN_TIME,
    Reason.NODE_TAINTS_APPLIED,
    Reason.DRIFT_REPAIRED,
    Reason.SHUTDOWN_STARTED,
    Reason.NODE_DRAINED,
    Reason.DRAIN_BLOCKED,
    Reason.DRAIN_TIMED_OUT,
    Reason.SHUTDOWN_CANCELLED,
    Reason.MACHINE_DELETED,
    Reason.MACHINE_REMOVED,
    Reason.SCHEDULE_DISABLED,
    Reason.SCHEDULE_RESUMED,
    Reason.PAUSED,
    Reason.KILL_SWITCH,
    Reason.EMERGENCY_RECLAIM,
    Reason.EMERGENCY_RECLAIM_DISABLED_SCHEDULE,
    Reason.RECLAIM_REVERTED,
    Reason.REMEDIATED,
    Reason.REMEDIATION_CANCELLED,
    *DRY_RUN_REASONS,
)
"""Events of a machine's life. Beside them, every other reason that warns is an Event when the problem begins."""
