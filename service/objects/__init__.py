"""Typed views of raw API objects, where JSON ends: what observation reads and what answers to writes are read with."""
