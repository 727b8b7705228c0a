"""The webhooks' certificates: what is issued, when it is rotated, and how servers load it."""
