"""Simulates the providers that Cluster API needs: bootstrap, infrastructure and control plane, without any real host.

K0sWorkerConfig and RemoteMachine behave as their counterparts in k0smotron do towards Cluster API; the Node of a
RemoteMachine appears in the workload cluster and leaves it with the RemoteMachine. `spec.simulate` of both asks for
failures, see `local.provider.simulate`.
"""
