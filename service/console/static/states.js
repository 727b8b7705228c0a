// What a machine does, in one word with a sign of its own: colours are never the only difference.

export const STATES = {
  attention: { label: "Needs attention", sign: "▲" },
  served: { label: "In service", sign: "●" },
  joining: { label: "Joining", sign: "◔" },
  leaving: { label: "Leaving", sign: "◕" },
  out: { label: "Out of service", sign: "○" },
  off: { label: "Switched off", sign: "⊘" },
};

const BY_PHASE = {
  Pending: "joining", Active: "joining", ShuttingDown: "leaving", EmergencyRemove: "leaving",
  Inactive: "out", Terminated: "off", Disabled: "off", Error: "attention",
};

export function stateOf(row) {
  if (row.ready) return "served";
  return row.phase ? BY_PHASE[row.phase] ?? "out" : "attention";
}

// For those who do not see the sign.
export function saidOf(row) {
  const { label } = STATES[stateOf(row)];
  return needsAttention(row) && label !== STATES.attention.label ? `${STATES.attention.label}; ${label.toLowerCase()}` : label;
}

export const needsAttention = (row) => (row.attention?.length ?? 0) > 0;
