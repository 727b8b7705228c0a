"""Who we say we are: the webhook's certificates."""
