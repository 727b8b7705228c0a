// One machine's line: what is planned, what people changed, what really happened.

import { h } from "/static/dom.js";
import { DAY, short } from "/static/time.js";

const WORDS = { joining: "joined", served: "in service", leaving: "left" };

// `said` is called when the pointer comes near: most pieces scroll by and need no words.
function piece(kind, range, begins, ends, said) {
  const whole = range.ends - range.begins, element = document.createElement("span");
  element.className = `piece ${kind}`;
  element.style.left = `${((begins - range.begins) / whole) * 100}%`;
  element.style.width = `${((ends - begins) / whole) * 100}%`;
  words.set(element, said);
  return element;
}

const words = new WeakMap();
document.addEventListener("pointerover", (event) => {
  const said = words.get(event.target);
  if (said && !event.target.title) event.target.title = said();
});

const between = (begins, ends) => `${short(begins)} – ${short(ends)}`;

export function drawTrack(element, line, range) {
  if (!line) return element.replaceChildren();
  const pieces = [], add = (...given) => pieces.push(piece(...given));
  for (const [begins, ends, state, name] of line.exceptions ?? []) {
    const mark = piece(`exception ${state.toLowerCase()}`, range, begins, ends, () => `${name || "Exception"}: ${state}`);
    if (name && (ends - begins) / (range.ends - range.begins) > 0.06) mark.append(h("span", { class: "name" }, name));
    pieces.push(mark);
  }
  for (const [begins, ends] of line.planned ?? []) add("planned", range, begins, ends, () => `Planned: ${between(begins, ends)}`);
  for (const [begins, ends] of line.wanted ?? []) add("wanted", range, begins, ends, () => `Will be in service: ${between(begins, ends)}`);
  for (const [begins, ends, what, why] of line.served ?? []) {
    add(what, range, begins, ends, () => `${WORDS[what]}: ${between(begins, ends)}${why && what === "leaving" ? `, ${why}` : ""}`);
  }
  for (const [begins, ends, state, name, by, reason] of line.overrides ?? []) {
    add(`override ${state.toLowerCase()}`, range, begins, ends,
      () => `Override ${name}: ${state}, ${between(begins, ends)}${by ? `, by ${by}` : ""}${reason ? `: ${reason}` : ""}`);
  }
  element.replaceChildren(...pieces);
  element.setAttribute("aria-label", inWords(line));
}

function inWords(line) {
  if (line.problem) return line.problem;
  const said = (line.wanted ?? line.planned ?? []).slice(0, 4).map(([begins, ends]) => between(begins, ends));
  const changed = (line.overrides ?? []).map(([begins, ends, state]) => `override ${state} ${between(begins, ends)}`);
  return [said.length ? `In service ${said.join(", ")}` : "No window in this time", ...changed].join("; ");
}

// The scale above the lines: days, and hours where there is room.
export function drawScale(element, range, label) {
  element.replaceChildren();
  const whole = range.ends - range.begins, days = Math.round(whole / DAY);
  for (const at of ticks(range, days)) {
    element.append(h("span", { class: "tick", style: { left: `${((at - range.begins) / whole) * 100}%` } }, label(at, days)));
  }
}

function ticks(range, days) {
  const found = [], moment = new Date(range.begins);
  while (moment.getTime() < range.ends) {
    found.push(moment.getTime());
    if (days <= 1) moment.setHours(moment.getHours() + 3);
    else moment.setDate(moment.getDate() + 1);
  }
  return found;
}
