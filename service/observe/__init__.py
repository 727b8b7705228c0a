"""From caches to a frozen World, and from events to keys."""
