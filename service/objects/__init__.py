"""Typed views of raw API objects; observation reads with them, and `act` reads the answers to its writes."""
