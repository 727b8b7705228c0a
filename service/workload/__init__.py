"""Connections to the workload clusters that Nodes live in: one for each cluster, shared by all machines in it."""
