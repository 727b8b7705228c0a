"""The reclaim agent in the workload cluster: a label on the Node that selects it for the DaemonSet, and a ConfigMap.

The label is set first and removed last, so a Node without it has no ConfigMap of ours.
"""

from crds import names
from service.decide.intent import Intent
from service.decide.phases import node_is_ours
from service.decide.plan import Action, InstallAgent, RemoveAgent
from service.decide.world import Node, World


def agent_actions(intent: Intent, world: World) -> tuple[Action, ...]:
    """The actions for the agent on our Node; none during a reclaim, which has its own."""
    node, machine = world.node, world.our_machine
    if node is None or machine is None or not node_is_ours(world) or world.status.reclaim is not None:
        return ()
    if machine.deleting:
        return remove_agent(node)
    if intent.spec is None:
        return ()
    commands = intent.spec.kill_if_commands
    return _install_agent(node, commands, world) if commands else remove_agent(node)


def wanted_commands(intent: Intent, world: World) -> tuple[str, ...]:
    """The commands that the agent on our Node should watch for; none if it should not run."""
    machine = world.our_machine
    if intent.spec is None or machine is None or machine.deleting or not node_is_ours(world):
        return ()
    return intent.spec.kill_if_commands


def remove_agent(node: Node) -> tuple[Action, ...]:
    """Remove the agent from a Node that has it."""
    return (RemoveAgent(node=node.name, uid=node.uid),) if names.LABEL_RECLAIM_AGENT in node.labels else ()


def config_name(node: str) -> str:
    """The ConfigMap of the agent on a Node."""
    return names.RECLAIM_CONFIG_PREFIX + node


def is_labelled(node: Node) -> bool:
    """Whether the agent's DaemonSet selects the Node."""
    return node.labels.get(names.LABEL_RECLAIM_AGENT) == names.RECLAIM_AGENT_ENABLED


def _install_agent(node: Node, commands: tuple[str, ...], world: World) -> tuple[Action, ...]:
    agent = world.reclaim_agent
    if agent is None or not agent.installed:
        return ()
    if is_labelled(node) and agent.commands == commands:
        return ()
    return (InstallAgent(node=node.name, uid=node.uid, commands=commands),)
