"""Every write of every scenario meets every fault, one at a time: `make chaos`."""
