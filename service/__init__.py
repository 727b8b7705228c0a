"""The operator process: admission webhooks, reconcile loops, health and metrics in one event loop."""

__version__ = "0.1.0"
