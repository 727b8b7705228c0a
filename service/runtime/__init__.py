"""Watches, caches, queue and workers; knows no ScheduledMachine."""
