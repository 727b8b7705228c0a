"""The controller: what wakes an object, one pass over it, and the wiring of the parts that do the work."""
