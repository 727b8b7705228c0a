// Which machines a page shows. The filter is part of the address, so that it can be kept as a bookmark.

import { machines, session } from "/static/api.js";
import { debounced, h } from "/static/dom.js";
import { STATES, needsAttention, stateOf } from "/static/states.js";

const FIELDS = ["q", "state", "namespace", "cluster"];

export function readFilter() {
  const given = new URLSearchParams(location.search);
  return Object.fromEntries(FIELDS.map((field) => [field, given.get(field) ?? ""]));
}

function writeFilter(filter) {
  const given = new URLSearchParams(location.search);
  for (const field of FIELDS) filter[field] ? given.set(field, filter[field]) : given.delete(field);
  const text = given.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
}

function takes(row, filter, words) {
  if (filter.namespace && row.namespace !== filter.namespace) return false;
  if (filter.cluster && row.cluster !== filter.cluster) return false;
  if (filter.state === "attention" ? !needsAttention(row) : filter.state && stateOf(row) !== filter.state) return false;
  if (!words.length) return true;
  const said = `${row.namespace}/${row.name} ${row.cluster} ${row.phase} ${row.node ?? ""} ${row.message ?? ""}`.toLowerCase();
  return words.every((word) => said.includes(word));
}

// What needs attention first, then by namespace and name, as people count: desk-2 before desk-10.
const collator = new Intl.Collator("en", { numeric: true });

export function chosen(filter) {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...machines.values()].filter((row) => takes(row, filter, words));
  return found.sort((a, b) => needsAttention(b) - needsAttention(a)
    || collator.compare(a.namespace, b.namespace) || collator.compare(a.name, b.name));
}

export function counts() {
  const found = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
  for (const row of machines.values()) {
    const state = stateOf(row);
    if (needsAttention(row)) found.attention += 1;
    if (state !== "attention") found[state] += 1;
  }
  return found;
}

function choices(field) {
  return [...new Set([...machines.values()].map((row) => row[field]).filter(Boolean))].sort(collator.compare);
}

function select(filter, field, label, changed) {
  const options = choices(field);
  if (options.length < 2 && !filter[field]) return null;
  const element = h("select", { "aria-label": label, on: { change: () => { filter[field] = element.value; changed(); } } },
    h("option", { value: "" }, `Every ${label.toLowerCase()}`),
    options.map((each) => h("option", { value: each, selected: each === filter[field] }, each)));
  return element;
}

// Says why a list is empty; `draw` returns whether it is.
export function emptyNote() {
  const element = h("p", { class: "empty" });
  const draw = (shown) => {
    const where = session.namespace ? `namespace ${session.namespace}` : "this cluster";
    element.hidden = shown.length > 0;
    element.textContent = machines.size ? "No machine matches the filter." : session.unread.ScheduledMachine ?? `There is no ScheduledMachine in ${where}.`;
    return !shown.length;
  };
  return { element, draw };
}

// The bar above a list: a button for each state with its count, a search field, namespaces and clusters.
export function filterBar(filter, onChange) {
  const bar = h("div", { class: "filters", role: "search" });
  const changed = () => { writeFilter(filter); draw(); onChange(); };
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search", value: filter.q,
    on: { input: debounced(() => { filter.q = search.value; writeFilter(filter); onChange(); }, 80) } });
  // Made once: a button that is drawn again loses the focus, and a click that is under way.
  const chips = Object.entries(STATES).map(([state, { label, sign }]) => {
    const count = h("b");
    const button = h("button", { type: "button", class: `chip ${state}`,
      on: { click: () => { filter.state = filter.state === state ? "" : state; changed(); } } },
      h("span", { class: "sign", "aria-hidden": "true" }, sign), count, ` ${label}`);
    return { state, count, button };
  });
  const buttons = h("div", { class: "chips" }, chips.map(({ button }) => button));
  const selects = h("div", { class: "selects" });
  let offered = "";
  function draw() {
    // Only when there is something new to choose: drawing them again closes one that is open.
    const offers = JSON.stringify([choices("namespace"), choices("cluster")]);
    if (offers !== offered) drawSelects();
    offered = offers;
    const found = counts();
    for (const { state, count, button } of chips) {
      button.setAttribute("aria-pressed", filter.state === state ? "true" : "false");
      count.textContent = String(found[state]);
    }
  }
  function drawSelects() {
    selects.replaceChildren(...[select(filter, "namespace", "Namespace", changed),
      select(filter, "cluster", "Cluster", changed)].filter(Boolean));
  }
  draw();
  bar.append(buttons, search, selects);
  return { element: bar, draw, search };
}
