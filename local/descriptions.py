"""What the help of `5spot local` says about its commands."""

from typing import Final

LOCAL: Final = """
Starts, shows and stops a throw-away control plane on this machine: real Kubernetes clusters with Cluster API and
simulated hosts, without containers.
"""
LOCAL_EPILOG: Final = """
Examples:
  5spot local up --detach
  eval "$(5spot local env)" && kubectl get clusters
  5spot local down"""
UP: Final = """
Starts two real Kubernetes clusters on loopback: a management cluster with Cluster API and a provider of simulated
hosts, and a workload cluster for their Nodes. A Cluster `demo` in namespace `default` is ready to use. The CRD and the
webhooks are installed, and the operator runs, on request with a clock of its own, which `5spot status`, `why`,
`preview`, `top`, `console`, `report` and the commands for overrides follow.

Everything runs until Ctrl-C, which removes all of it. The first start builds the programs, which takes several minutes.

To simulate failures, set `spec.simulate` of a K0sWorkerConfig or RemoteMachine: `delaySeconds: N` makes a host late,
`failure: InvalidConfiguration | NeverReady | NodeNeverJoins` makes it fail. RemoteMachines with the same `spec.address`
are one host.
"""
UP_EPILOG: Final = """
Examples:
  5spot local up --detach
  5spot local up --at 2026-03-06T08:55:00Z --speed 60   an hour in a minute
  5spot local up --no-operator --kubeconfig dev.yaml    run your own operator"""
ENV: Final = """
Prints shell commands that make kubectl talk to the management cluster, and with `--context workload` to the workload
cluster. If there is no kubectl on the PATH, they add the one that `5spot local up` built.
"""
ENV_EPILOG: Final = """
Example:
  eval "$(5spot local env)" && kubectl --context workload get nodes"""
DOWN: Final = """
Stops the control plane that `5spot local up` started, and removes the kubeconfigs that it wrote. A kubeconfig that was
changed since stays.
"""
DOWN_EPILOG: Final = """
Example:
  5spot local down"""
STATUS: Final = "Shows which programs run, and where."
STATUS_EPILOG: Final = """
Exit codes:
  0  a control plane runs or is starting
  3  none is running

Example:
  5spot local status || 5spot local up --detach"""
