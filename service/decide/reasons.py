"""The reasons of conditions and Events: an API that alerts, scripts and people depend on, so no word here changes.

Each reason carries what it means, what the user can do, and the type of the Events that carry it. The pages
docs/reference/conditions.md and docs/reference/events.md are generated from here and from
`service.decide.condition_types`, which lists every reason where it can occur.
"""

from enum import StrEnum
from typing import Final, Self


class Severity(StrEnum):
    """The types of Events that Kubernetes knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


WARNING: Final = Severity.WARNING


class Reason(StrEnum):
    """Why a condition has its status, or why an Event is emitted, in one word that programs compare."""

    meaning: str
    remedy: str
    """What the user can do; empty if nothing needs to be done."""
    severity: Severity
    """The type of an Event with this reason."""
    page: str
    """Where the docs say more, as a path in docs/ with an anchor; empty if they do not."""

    def __new__(
        cls, text: str, meaning: str, remedy: str = "", severity: Severity = Severity.NORMAL, page: str = ""
    ) -> Self:
        """A member from the parts that its line lists."""
        member = str.__new__(cls, text)
        member._value_ = text
        member.meaning = meaning
        member.remedy = remedy
        member.severity = severity
        member.page = page
        return member

    @classmethod
    def for_error(cls, kind: type[Exception]) -> "Reason":
        """The reason for a class of `service.kube.errors`: the member of its name, or of its nearest base class."""
        named = (cls._value2member_map_.get(base.__name__) for base in kind.__mro__)
        return next((found for found in named if isinstance(found, Reason)), cls.API_UNAVAILABLE)

    # While a window is open

    MACHINE_RUNNING = "MachineRunning", "The Node is Ready."
    MACHINE_PROVISIONING = (
        "MachineProvisioning",
        "Cluster API or the provider is creating the machine; the message quotes Cluster API.",
        "If it lasts, look at the Machine and the infrastructure object.",
    )
    WAITING_FOR_NODE = (
        "WaitingForNode",
        "The Machine names a Node that has not joined yet, has gone, or has no `spec.providerID` yet.",
        "If it lasts, look at the kubelet and at the cloud provider or host agent that sets `spec.providerID`.",
    )
    NODE_NOT_READY = (
        "NodeNotReady",
        "The Node is registered and not Ready.",
        "Find out why the Node is not Ready, as for any other Node.",
    )
    NOT_READY_IN_TIME = (
        "NotReadyInTime",
        "The Node was not Ready within `spec.provisioningTimeout` of the creation of the Machine. The message quotes "
        "what Cluster API waits for. The controller changes nothing and warns once for each Machine.",
        "Follow the runbook; a MachineHealthCheck can replace such Machines.",
        WARNING,
        "monitoring.md#fivespotmachinenotreadyintime",
    )
    WAITING_FOR_PREVIOUS_MACHINE = (
        "WaitingForPreviousMachine",
        "A window is open, but objects of the previous machine are still being deleted.",
        "If it lasts, find out who holds their finalizers.",
    )
    WAITING_FOR_PROVIDER = (
        "WaitingForProvider",
        "Calls for the provider's objects take long, mostly because its webhook hangs. Enough of them are in flight, "
        "and this machine waits without holding up others.",
        "Look at the provider's webhook; the controller goes on by itself.",
    )
    WAITING_FOR_TURN = (
        "WaitingForTurn",
        "The Cluster limits how many machines are provisioned, or drained, at once, and others go first; the message "
        "says how many did when the wait began. A close waits at most `spec.gracefulShutdownTimeout`.",
        "Raise the limit, or `spec.priority`, if it takes too long.",
        Severity.NORMAL,
        "crowds.md",
    )
    MACHINE_GONE = "MachineGone", "The Machine was deleted; the controller creates a new one at once."
    HOST_CONFLICT = (
        "HostConflict",
        "Another ScheduledMachine needs the same host at the same time.",
        "Give one of them another host or other hours.",
        WARNING,
        "lifecycle.md#what-a-host-is",
    )
    SPEC_EDITED = "SpecEdited", "The controller replaces a failed Machine because its specs were edited."
    REMEDIATING = "Remediating", "The controller replaces the Machine because its MachineHealthCheck failed."
    REMEDIATION_PAUSED = (
        "RemediationPaused",
        "A MachineHealthCheck asks for another replacement too soon. The message says when the next one is due; if the "
        "check succeeds before, the Machine stays.",
        "Find out why the machine does not stay healthy.",
        WARNING,
    )

    # In a dry run

    WOULD_CREATE = (
        "WouldCreate",
        "Without the dry run, the controller would create what the message names.",
        "End the dry run when its reports are what you expect.",
        Severity.NORMAL,
        "dry-run.md",
    )
    WOULD_DELETE = (
        "WouldDelete",
        "Without the dry run, the controller would drain the Node, or delete what the message names.",
        "End the dry run when its reports are what you expect.",
        Severity.NORMAL,
        "dry-run.md",
    )
    WOULD_CHANGE = (
        "WouldChange",
        "Without the dry run, the controller would change an object or the Node, as the message says.",
        "End the dry run when its reports are what you expect.",
        Severity.NORMAL,
        "dry-run.md",
    )
    NOTHING_TO_DO = "NothingToDo", "The dry run would do nothing now.", "", Severity.NORMAL, "dry-run.md"

    # While no window is open

    OUTSIDE_SCHEDULE = "OutsideSchedule", "No window is open."
    WINDOW_SKIPPED = (
        "WindowSkipped",
        "A window is open, but `schedule.stopEarly` is as long as the window, or longer; no machine is created for it.",
        "Make the window longer, or `schedule.stopEarly` shorter.",
        WARNING,
        "leads.md",
    )
    DRAINING = (
        "Draining",
        "Pods are leaving the Node. The message names the pods and budgets that hold up the drain, and when it ends.",
        "If a budget holds it up, correct the budget; the time limits apply either way.",
    )
    DRAIN_BLOCKED = (
        "DrainBlocked",
        "A third of the time for the drain is over and pods are still on the Node. The message names the pods and "
        "budgets that hold it up, and when the Machine is deleted anyway.",
        "Correct the budget, or wait for the time limit.",
        WARNING,
        "lifecycle.md#which-pods-leave-and-in-which-order",
    )
    DRAIN_TIMED_OUT = (
        "DrainTimedOut",
        "Not all pods left the Node in time; the controller deletes the Machine anyway.",
        "Give the pods more time with `spec.nodeDrainTimeout`, or correct the budget.",
        WARNING,
    )
    NODE_DRAINED = "NodeDrained", "All pods that must leave have left the Node."
    DELETING_MACHINE = (
        "DeletingMachine",
        "The Machine is being deleted. If hooks, pods or volumes hold it up, the message quotes Cluster API.",
        "If it lasts, look at the Machine's conditions and finalizers.",
    )
    REMOVING_OBJECTS = (
        "RemovingObjects",
        "The Machine is gone, and the controller deletes the objects that are left of it.",
        "If it lasts, find out who holds their finalizers.",
    )

    # Rules that outrank the schedule

    PAUSED = (
        "Paused",
        "The Cluster or the ScheduledMachine is paused; the controller changes nothing.",
        "`kubectl annotate sm NAME cluster.x-k8s.io/paused-` resumes a ScheduledMachine.",
    )
    DELETION_PAUSED = (
        "DeletionPaused",
        "The ScheduledMachine is being deleted, and the deletion waits for the end of a pause.",
        "Resume the Cluster or the ScheduledMachine.",
        WARNING,
    )
    DELETED = "Deleted", "The ScheduledMachine is being deleted and all its objects are gone."
    RELEASED = "Released", "The ScheduledMachine is being deleted and the controller has released its finalizer."
    FINALIZER_RELEASED = (
        "FinalizerReleased",
        "Ten minutes after the shutdown's time limit objects were still there. The controller released the "
        "ScheduledMachine and leaves them behind.",
        "Look at the objects that the message names, and delete them by hand.",
        WARNING,
    )
    KILL_SWITCH = (
        "KillSwitch",
        "`spec.killSwitch` is true; the controller removes the machine at once.",
        "Set `spec.killSwitch` to false to return the machine to its schedule.",
        WARNING,
    )
    TERMINATING = (
        "Terminating",
        "`spec.killSwitch` is true and the machine is being removed.",
        "Set `spec.killSwitch` to false to return the machine to its schedule.",
    )
    EMERGENCY_RECLAIM = (
        "EmergencyReclaim",
        "The owner of the host claimed it back; the controller removes the machine and disables the schedule.",
        "The message has the command that returns the machine to service.",
        WARNING,
        "emergency-reclaim-agent.md#what-the-controller-does",
    )
    RECLAIM_NOT_ACKNOWLEDGED = (
        "ReclaimNotAcknowledged",
        "The owner of the host claimed it back, and no user has acknowledged that; the schedule counts as disabled.",
        "Acknowledge it with `5spot resume NAME`.",
        WARNING,
        "emergency-reclaim-agent.md#with-an-acknowledgement",
    )
    DISABLED = (
        "Disabled",
        "`spec.schedule.enabled` is false; the controller neither creates nor removes anything.",
        "Set `spec.schedule.enabled` to true to resume.",
    )

    # What a user or an administrator must correct

    INVALID_SPEC = (
        "InvalidSpec",
        "The stored spec breaks a rule that is newer than the object; the controller creates nothing.",
        "Edit the spec; `5spot validate` lists what is wrong.",
        WARNING,
    )
    CALENDAR_NOT_FOUND = (
        "CalendarNotFound",
        "A calendar that the schedule names does not exist, so the controller cannot read the schedule. It neither "
        "creates nor removes the machine because of the schedule.",
        "Create the calendar, or correct `spec.schedule.exceptions`.",
        WARNING,
        "schedules.md",
    )
    CALENDAR_INVALID = (
        "CalendarInvalid",
        "A calendar that the schedule names cannot be read; the message says what is wrong. The controller neither "
        "creates nor removes the machine because of the schedule. The calendar itself has this Event, too.",
        "Correct the calendar; its status says what is wrong.",
        WARNING,
        "schedules.md",
    )
    CLASS_NOT_FOUND = (
        "ClassNotFound",
        "The ScheduledMachineClass that the spec names does not exist. The controller creates nothing; a machine that "
        "runs is removed by its schedule.",
        "Create the class, or correct `spec.classRef`.",
        WARNING,
        "multi-tenancy.md",
    )
    CLASS_INVALID = (
        "ClassInvalid",
        "The ScheduledMachineClass that the spec names cannot be used; the message says what is wrong with it. The "
        "controller creates nothing; a machine that runs is removed by its schedule.",
        "The platform team corrects the class.",
        WARNING,
        "multi-tenancy.md",
    )
    CLASS_NOT_ALLOWED = (
        "ClassNotAllowed",
        "The ScheduledMachineClass that the spec names is not, or no longer, for this namespace. The controller "
        "creates nothing; a machine that runs is removed by its schedule.",
        "Name another class, or ask the platform team to let the namespace use this one.",
        WARNING,
        "multi-tenancy.md",
    )
    CLUSTER_NOT_FOUND = (
        "ClusterNotFound",
        "The namespace has no Cluster of the name in `spec.clusterName`.",
        "Create the Cluster, or correct the name.",
        WARNING,
    )
    CLUSTER_DELETING = (
        "ClusterDeleting",
        "The Cluster is being deleted; the controller removes the machine.",
        "",
        WARNING,
    )
    CAPI_NOT_INSTALLED = (
        "CAPINotInstalled",
        "The API server does not serve Cluster API.",
        "Install Cluster API; the controller notices by itself.",
        WARNING,
    )
    FOREIGN_OBJECT = (
        "ForeignObject",
        "An object with a name that the controller needs exists and belongs to another owner.",
        "Delete or rename the object, or rename the ScheduledMachine; after a restore run `5spot adopt`.",
        WARNING,
        "backup.md",
    )
    PROVIDER_NOT_FOUND = (
        "ProviderNotFound",
        "The API server does not serve the kind in `bootstrapSpec` or `infrastructureSpec`.",
        "Install the provider, or correct `apiVersion` and `kind`.",
        WARNING,
    )
    KIND_NOT_SERVED = (
        "KindNotServed",
        "The API server no longer serves the provider's kind in any version, so the controller cannot tell whether the "
        "object exists. It creates nothing and reports nothing as gone.",
        "Install the provider again.",
        WARNING,
    )
    PROVIDER_REJECTED = (
        "ProviderRejected",
        "The provider's schema, an admission webhook or a ValidatingAdmissionPolicy refused the object; the message "
        "quotes it.",
        "Correct the spec.",
        WARNING,
    )
    QUOTA_EXCEEDED = (
        "QuotaExceeded",
        "A ResourceQuota of the namespace allows no more such objects; the message quotes it. The controller retries.",
        "Raise the quota, or delete other objects.",
        WARNING,
    )
    NAMESPACE_TERMINATING = (
        "NamespaceTerminating",
        "The namespace is being deleted, so the API server creates nothing in it. The Event is about the Namespace and "
        "is in namespace `default`: a namespace that is being deleted takes no Events.",
        "",
        WARNING,
        "uninstall.md#a-namespace-with-machines",
    )
    FORBIDDEN = (
        "Forbidden",
        "The operator lacks a permission; the message names it. In WorkloadClusterReachable: the user of the "
        "kubeconfig lacks it.",
        "Install the chart's roles, or give the kubeconfig's user the permission.",
        WARNING,
    )
    UNAUTHORIZED = (
        "Unauthorized",
        "An API server does not accept the operator's token. In WorkloadClusterReachable: that of the kubeconfig.",
        "Look at the operator's ServiceAccount, or at the workload cluster's kubeconfig.",
        WARNING,
    )
    REJECTED = (
        "Rejected",
        "An API server refused a request and would refuse it again; the message quotes it.",
        "It depends on the message; often another admission policy refuses the object.",
        WARNING,
    )
    INVALID = (
        "Invalid",
        "An API server refused an object that breaks its schema; the message quotes it.",
        "It depends on the message; often a CRD is older than the operator.",
        WARNING,
    )
    NOT_FOUND = (
        "NotFound",
        "The server at the kubeconfig's address answers, but does not know Nodes.",
        "Correct the address in the kubeconfig: it is not that of a Kubernetes API server.",
        WARNING,
    )
    API_UNAVAILABLE = (
        "APIUnavailable",
        "An API server does not answer or is overloaded, or it cannot list a provider's objects because their "
        "conversion webhook is down. The controller retries with growing pauses.",
        "If the message names a webhook, repair that webhook.",
        WARNING,
    )

    # A Machine that failed, or contradicts itself

    INFRASTRUCTURE_GONE = (
        "InfrastructureGone",
        "The infrastructure object of a provisioned Machine was deleted.",
        "Edit the specs, or wait for the end of the window; the controller then creates a new Machine.",
        WARNING,
    )
    MACHINE_FAILED = (
        "MachineFailed",
        "The provider reported a terminal failure without a reason that fits a condition. Most providers give one of "
        "their own, such as `InvalidConfiguration`, and then that is the reason.",
        "Read the message; edit the specs, or let a MachineHealthCheck replace the Machine.",
        WARNING,
    )
    PROVIDER_ID_CHANGED = (
        "ProviderIDChanged",
        "The Machine's `spec.providerID`, which is set once, has changed. The controller does not write to the Node.",
        "Find out who changed the Machine.",
        WARNING,
    )
    NODE_REF_CHANGED = (
        "NodeRefChanged",
        "The Machine's `status.nodeRef`, which is set once, has changed. The controller does not write to the Node.",
        "Find out who registered the Node.",
        WARNING,
    )
    NODE_OF_ANOTHER_HOST = (
        "NodeOfAnotherHost",
        "The Node has the `spec.providerID` of another host. The controller does not write to it.",
        "Find out which two hosts register under the same Node name.",
        WARNING,
    )

    # Scheduled

    SCHEDULE_ACTIVE = "ScheduleActive", "A window is open."
    SCHEDULE_DISABLED = (
        "ScheduleDisabled",
        "`spec.schedule.enabled` is false.",
        "Set `spec.schedule.enabled` to true to resume.",
    )
    INVALID_SCHEDULE = (
        "InvalidSchedule",
        "The controller cannot read the schedule; a machine that runs stays.",
        "Edit the schedule; `5spot validate` says what is wrong.",
    )

    # MachineReady

    MACHINE_READY = "MachineReady", "The Cluster API Machine runs. As an Event: the Node has become Ready."
    NO_MACHINE = "NoMachine", "No Machine exists at present."
    MACHINE_PROVISIONED = "MachineProvisioned", "The host is provisioned and its Node has not joined yet."
    MACHINE_DELETING = "MachineDeleting", "The Machine is being deleted."

    # ReferencesValid

    REFERENCES_VALID = "ReferencesValid", "The Cluster exists and the objects that the spec needs can be created."

    # NodeTainted

    APPLIED = "Applied", "All declared taints are on the Node."
    NO_NODE_YET = "NoNodeYet", "The controller has not seen the Node, or cannot see it at present."
    TAINT_OWNERSHIP_CONFLICT = (
        "TaintOwnershipConflict",
        "Another program or person set a taint of the same key and effect, or changed the controller's. The controller "
        "leaves it as it is.",
        "Remove the taint from the Node or from `spec.nodeTaints`.",
        WARNING,
        "taints.md",
    )
    PATCH_FAILED = (
        "PatchFailed",
        "The controller could not write the Node's taints; the message says why. It retries.",
        "It depends on the message.",
        WARNING,
    )

    # UpToDate

    UP_TO_DATE = "UpToDate", "The Machine was created from the current specs."
    APPLIES_AT_NEXT_CREATION = (
        "AppliesAtNextCreation",
        "`bootstrapSpec`, `infrastructureSpec`, or `version` or `failureDomain` of `machineTemplate` was edited; the "
        "edit applies when the next Machine is created.",
    )
    PROVIDER_SPEC_CHANGED = (
        "ProviderSpecChanged",
        "A person or program other than the provider changed the spec of the bootstrap or infrastructure object; the "
        "message names the field and the field manager.",
        "",
        Severity.NORMAL,
        "lifecycle.md#what-counts-as-a-change",
    )

    # WorkloadClusterReachable

    REACHABLE = "Reachable", "The workload cluster answers."
    CONNECTING = "Connecting", "The controller is connecting; this lasts for moments.", "", WARNING
    NODE_UNREADABLE = (
        "NodeUnreadable",
        "The workload cluster sent the Node in a form that the controller does not accept: too large, or without a "
        "uid. The Node counts neither as present nor as gone.",
        "Look at the Node's size in the workload cluster.",
        WARNING,
    )
    KUBECONFIG_NOT_FOUND = (
        "KubeconfigNotFound",
        "The Secret with the kubeconfig does not exist.",
        "Cluster API creates it. It needs type `cluster.x-k8s.io/secret`, the label `cluster.x-k8s.io/cluster-name` "
        "and the key `value`.",
        WARNING,
    )
    KUBECONFIG_REFUSED = (
        "KubeconfigRefused",
        "The kubeconfig contains what the operator does not use: exec, auth-provider, file paths, skipped verification "
        "or YAML aliases.",
        "Write CA, certificate, key and token inline.",
        WARNING,
    )
    NO_ANSWER = (
        "NoAnswer",
        "No API server that the kubeconfig's CA vouches for answers at its address.",
        "Check network, firewall, CA and the cluster itself. The operator's log says what it found; the status does "
        "not, as it would let a tenant look for open ports.",
        WARNING,
    )
    PODS_NOT_LISTED = (
        "PodsNotListed",
        "The controller could not list the pods of the Node for the drain. It retries after 5 s, then less often, at "
        "least every minute.",
        "Look at the workload cluster's API server.",
        WARNING,
    )
    NO_NODE = "NoNode", "No Node has joined that the controller could look at.", "", WARNING
    NO_CLUSTER = "NoCluster", "The spec names no Cluster.", "Set `spec.clusterName`.", WARNING
    CONNECTION_BROKEN = (
        "ConnectionBroken",
        "A fault of the operator; it retries every minute.",
        "Please report what its log says.",
        WARNING,
    )
    WORKLOAD_CLUSTER_UNREACHABLE = (
        "WorkloadClusterUnreachable",
        "The controller can neither see nor drain the Node; it deletes the Machine at its time limit anyway.",
        "See the condition WorkloadClusterReachable.",
        WARNING,
    )

    # ReclaimAgentReady

    AGENT_READY = "AgentReady", "The agent runs on the Node and has its list of commands."
    AGENT_NAMESPACE_MISSING = (
        "AgentNamespaceMissing",
        "The agent's namespace does not exist in the workload cluster.",
        "Install the agent in the workload cluster.",
        WARNING,
        "emergency-reclaim-agent.md#is-the-agent-there",
    )
    AGENT_DAEMON_SET_MISSING = (
        "AgentDaemonSetMissing",
        "The agent's DaemonSet does not exist in the workload cluster.",
        "Install the agent in the workload cluster.",
        WARNING,
        "emergency-reclaim-agent.md#is-the-agent-there",
    )
    AGENT_NOT_READY = (
        "AgentNotReady",
        "The agent's pod on this Node is not ready.",
        "If it lasts, look at the pod.",
    )
    AGENT_NOT_SEEN = (
        "AgentNotSeen",
        "The workload cluster refuses to let the controller read the agent's objects.",
        "Give the kubeconfig's user the permission that the message names.",
    )
    NOT_EQUIPPED = (
        "NotEquipped",
        "The controller could not write the agent's ConfigMap or the Node's label. It retries.",
        "Give the kubeconfig's user the permission to write ConfigMaps and Nodes.",
    )

    # Overridden

    OVERRIDE_OPEN = "OverrideOpen", "An override keeps the machine in service; the message says until when."
    OVERRIDE_CLOSED = "OverrideClosed", "An override keeps the machine out of service; the message says until when."
    OVERRIDE_SCHEDULED = (
        "OverrideScheduled",
        "An override sets older ones aside: the machine follows its schedule.",
    )
    OVERRIDE_OUTRANKED = (
        "OverrideOutranked",
        "An override is in force, but something else decides, such as a pause or a disabled schedule; the message says "
        "what.",
        "Correct what the message names, or delete the override.",
    )

    # Events only

    OVERRIDE_BEGAN = "OverrideBegan", "An override begins to decide about the machine."
    OVERRIDE_ENDED = "OverrideEnded", "An override no longer decides about the machine: it ended, or was deleted."

    SCHEDULE_ACTIVATED = "ScheduleActivated", "A window opened."
    SCHEDULE_DEACTIVATED = "ScheduleDeactivated", "The window closed."
    SCHEDULE_RESUMED = "ScheduleResumed", "The machine follows its schedule again."
    MACHINE_CREATED = "MachineCreated", "The controller created bootstrap object, infrastructure object and Machine."
    OBJECT_CREATED = "ObjectCreated", "One of the three objects was missing, and the controller created it again."
    NODE_TAINTS_APPLIED = "NodeTaintsApplied", "The controller wrote the Node's taints."
    DRIFT_REPAIRED = (
        "DriftRepaired",
        "The controller restored labels, annotations, timeouts or owners that were changed.",
    )
    SHUTDOWN_STARTED = "ShutdownStarted", "The shutdown started."
    SHUTDOWN_CANCELLED = (
        "ShutdownCancelled",
        "A window opened, or the schedule was edited or disabled, before the controller deleted the Machine.",
    )
    MACHINE_DELETED = "MachineDeleted", "The controller deletes the Machine; the message says why."
    MACHINE_REMOVED = "MachineRemoved", "The Machine and all objects that belong to it are gone."
    EMERGENCY_RECLAIM_DISABLED_SCHEDULE = (
        "EmergencyReclaimDisabledSchedule",
        "The controller set `spec.schedule.enabled` to false because of an emergency reclaim.",
        "Set it to true to return the machine to service.",
        WARNING,
    )
    RECLAIM_REVERTED = (
        "ReclaimReverted",
        "A GitOps tool enabled the schedule within 15 minutes of a reclaim; the message names its field manager.",
        "Let the tool ignore `spec.schedule.enabled`.",
        WARNING,
        "emergency-reclaim-agent.md#with-gitops",
    )
    REMEDIATED = "Remediated", "The controller replaces an unhealthy Machine."
    REMEDIATION_CANCELLED = (
        "RemediationCancelled",
        "The MachineHealthCheck of a Machine that was to be replaced succeeds again; the Machine stays.",
    )


DRY_RUN_REASONS: Final = (Reason.WOULD_CREATE, Reason.WOULD_DELETE, Reason.WOULD_CHANGE)
"""What a dry run would do."""


class ProviderReason(str):
    """A word of the provider's own for the failure of a Machine, such as `InvalidConfiguration`."""

    __slots__ = ()
    severity: Final = WARNING


AnyReason = Reason | ProviderReason


def read_reason(text: str) -> AnyReason:
    """The reason of a stored condition; one that is not ours came from a provider."""
    known = Reason._value2member_map_.get(text)
    return known if isinstance(known, Reason) else ProviderReason(text)
