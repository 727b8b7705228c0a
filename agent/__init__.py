"""The node-side agent: sees the owner come back and asks for the machine. Runs as `5spot agent` on every host."""
