"""What the process serves over HTTP: health, metrics and admission webhooks, with their certificates."""
