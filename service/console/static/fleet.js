// The fleet: a row for each machine, what needs attention first.

import { listen, session } from "/static/api.js";
import { h } from "/static/dom.js";
import { chosen, emptyNote, filterBar, readFilter } from "/static/filters.js";
import { LongList } from "/static/list.js";
import { STATES, needsAttention, stateOf } from "/static/states.js";
import { relative, short } from "/static/time.js";

const HEADS = ["Machine", "State", "What", "Next", "Schedule", "Cluster"];

export const pathOf = (row) => `/machine/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;

export function pill(row) {
  const state = stateOf(row), { label, sign } = STATES[state];
  return h("span", { class: `pill ${state}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign),
    state === "attention" ? row.phase || "Not handled" : label);
}

export function nextOf(row) {
  if (!row.next) return "";
  const at = Date.parse(row.next.at);
  return `${row.next.what} ${short(at)}, ${relative(at)}`;
}

function nextCell(row) {
  if (!row.next) return "";
  const at = Date.parse(row.next.at);
  return [`${row.next.what} ${short(at)}`, h("span", { class: "dim" }, relative(at))];
}

// Not where all machines are in one namespace anyway.
export const namespaceOf = (row) => session.namespace ? null : h("span", { class: "dim" }, row.namespace);

function what(row) {
  if (needsAttention(row)) return row.attention[0];
  return row.heldUp || row.message || "";
}

function cell(name, ...children) {
  return h("div", { class: `cell ${name}`, role: "cell" }, children);
}

function draw(element, row) {
  element.classList.toggle("alarm", needsAttention(row));
  const override = row.override ? h("span", { class: "tag override" }, `override: ${row.override.state}`) : null;
  element.replaceChildren(
    cell("machine", h("a", { href: pathOf(row), title: row.name }, row.name), namespaceOf(row)),
    cell("state", pill(row)),
    cell("what", override, needsAttention(row) ? h("span", { class: "sign", "aria-label": "Needs attention:" }, "▲ ") : null, what(row)),
    cell("next", nextCell(row)),
    cell("schedule", row.schedule ?? ""),
    cell("cluster", row.cluster ?? "", h("span", { class: "dim" }, row.node ?? "")));
}

export function fleet(main) {
  const filter = readFilter();
  const head = h("div", { class: "row head", role: "row", "aria-rowindex": "1" },
    HEADS.map((each) => h("div", { class: `cell ${each.toLowerCase()}`, role: "columnheader" }, each)));
  const list = new LongList({ label: "Machines", head, draw });
  const none = emptyNote();
  const update = () => {
    const shown = chosen(filter);
    list.set(shown);
    list.element.hidden = none.draw(shown);
  };
  const bar = filterBar(filter, update);
  main.replaceChildren(h("section", { class: "page fleet" }, h("h1", { class: "unseen" }, "Fleet"), bar.element, none.element, list.element));
  update();
  const timer = setInterval(() => list.refresh((row) => row?.next), 30_000);
  const unlisten = listen(() => { bar.draw(); update(); });
  return { title: "Fleet", search: bar.search, close: () => { clearInterval(timer); unlisten(); list.close(); } };
}

