"""Alerts and dashboard in a real Prometheus that reads real metrics."""
