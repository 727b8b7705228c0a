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

export const needsAttention = (row) => (row.attention?.length ?? 0) > 0;
