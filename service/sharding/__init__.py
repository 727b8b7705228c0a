"""Which replica acts for which ScheduledMachines: shards, their Leases, and the fence that every write passes."""
