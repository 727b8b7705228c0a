"""Where a Machine is in its life, from what is observed: the same words for every provider."""

from crds.status import MachinePhase
from service.decide.reasons import Reason
from service.decide.world import Problem, Role, World


def machine_phase(world: World) -> MachinePhase | None:
    """The phase of our Machine; None without one."""
    machine = world.our_machine
    if machine is None:
        return None
    if machine.deleting:
        return MachinePhase.DELETING
    if machine_failure(world):
        return MachinePhase.FAILED
    if machine.node_name:
        return MachinePhase.RUNNING
    return MachinePhase.PROVISIONED if machine.provider_id else MachinePhase.PROVISIONING


def machine_failure(world: World) -> Problem | None:
    """The reason why our Machine is lost, if it is."""
    machine = world.our_machine
    if machine is None or machine.deleting:
        return None
    if machine.provider_id and world.infrastructure is None and Role.INFRASTRUCTURE not in world.unreadable:
        lost = f"The infrastructure object of {machine.child.name} was deleted although the host is provisioned."
        return Problem(reason=Reason.INFRASTRUCTURE_GONE, message=lost)
    if not failure_is_certain(world):
        return machine.failure if _reported_before(world) else None
    # CAPI never clears a failure reason, even if the provider recovers.
    recovered = world.node is not None and world.node.ready and machine.infrastructure_ready
    return None if recovered else machine.failure


def failure_is_certain(world: World) -> bool:
    """Whether the Node, which outranks a failure, could be read: a Machine is never replaced on a guess."""
    machine, blind = world.our_machine, world.workload is None or not world.workload.reachable
    may_run = machine is not None and machine.node_name is not None and machine.infrastructure_ready
    return not (may_run and blind and world.node is None)


def _reported_before(world: World) -> bool:
    """Whether the status reports the failure already; without a view of the Node it stays as it was."""
    machine, before = world.our_machine, world.status
    same = machine is not None and before.machine_ref is not None and before.machine_ref.uid == machine.child.uid
    return same and before.machine_phase is MachinePhase.FAILED


def contradiction(world: World) -> Problem | None:
    """What cannot be true: providerID and Node of a Machine are set once, and its Node has its providerID."""
    return _changed(world) or _other_host(world)


def _changed(world: World) -> Problem | None:
    machine, before = world.our_machine, world.status
    if machine is None or before.machine_ref is None or before.machine_ref.uid != machine.child.uid:
        return None
    if before.provider_id and machine.provider_id != before.provider_id:
        message = f"providerID changed from {before.provider_id} to {machine.provider_id or 'nothing'}."
        return Problem(reason=Reason.PROVIDER_ID_CHANGED, message=message)
    if before.node_ref and machine.node_name != before.node_ref.name:
        message = f"The Node changed from {before.node_ref.name} to {machine.node_name or 'nothing'}."
        return Problem(reason=Reason.NODE_REF_CHANGED, message=message)
    return None


def _other_host(world: World) -> Problem | None:
    machine, node = world.our_machine, world.node
    if machine is None or node is None or not (machine.provider_id and node.provider_id):
        return None
    if node.provider_id == machine.provider_id:
        return None
    theirs, mine = node.provider_id, machine.provider_id
    message = f"Node {node.name} is another host: its providerID is {theirs}, the Machine's is {mine}."
    return Problem(reason=Reason.NODE_OF_ANOTHER_HOST, message=message)


def node_is_ours(world: World) -> bool:
    """Whether the Node seen is the host of our Machine; only then may it be written to."""
    machine, node = world.our_machine, world.node
    if machine is None or node is None or contradiction(world):
        return False
    return bool(node.provider_id) and node.provider_id == machine.provider_id
