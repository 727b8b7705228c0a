"""Performs plans and reports outcomes."""
