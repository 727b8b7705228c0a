"""Reads caches, and where needed API servers, and freezes what concerns one ScheduledMachine into a World."""
