"""ScheduledMachines as a person looks at them, with the rights of that person: for commands and the console."""
