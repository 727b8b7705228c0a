"""The reclaim agent: runs as `5spot agent` on a host, sees its owner start working, and requests the machine back."""
