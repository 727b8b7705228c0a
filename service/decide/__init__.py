"""Pure decisions: spec, world and time in, a plan out."""
