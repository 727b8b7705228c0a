"""A throw-away control plane for tests, demo and benchmarks."""
