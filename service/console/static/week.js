// The week: a timeline for each machine, with a line at now; zooms to a day or a month.

import { keyOf, listen, machines, post } from "/static/api.js";
import { debounced, h } from "/static/dom.js";
import { namespaceOf, pathOf } from "/static/fleet.js";
import { chosen, emptyNote, filterBar, readFilter } from "/static/filters.js";
import { LongList } from "/static/list.js";
import { STATES, needsAttention, saidOf, stateOf } from "/static/states.js";
import { DAY, clock, date, fromIsoDay, isoDay, long, month, now, startOfDay, startOfMonth, startOfWeek, tickEvery, weekday } from "/static/time.js";
import { drawScale, drawTrack } from "/static/track.js";

const ZOOMS = { day: "Day", week: "Week", month: "Month" };
const AT_ONCE = 400;
const LEGEND = [["served", "in service"], ["wanted", "will be"], ["planned", "planned"], ["joining", "joining"],
  ["leaving", "leaving"], ["override open", "override: open"], ["override closed", "override: closed"], ["exception closed", "exception"]];

function readView() {
  const given = new URLSearchParams(location.search);
  const zoom = given.get("zoom") in ZOOMS ? given.get("zoom") : "week";
  return { zoom, at: fromIsoDay(given.get("at")) };
}

function writeView(view) {
  const given = new URLSearchParams(location.search);
  view.zoom === "week" ? given.delete("zoom") : given.set("zoom", view.zoom);
  view.at === null ? given.delete("at") : given.set("at", isoDay(view.at));
  const text = given.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
}

function rangeOf({ zoom, at }, step = 0) {
  const moment = at ?? now();
  if (zoom === "day") return { begins: startOfDay(moment, step), ends: startOfDay(moment, step + 1) };
  if (zoom === "month") return { begins: startOfMonth(moment, step), ends: startOfMonth(moment, step + 1) };
  const monday = startOfWeek(moment);
  return { begins: startOfDay(monday, 7 * step), ends: startOfDay(monday, 7 * step + 7) };
}

export function title({ begins, ends }, zoom) {
  if (zoom === "day") return long(begins);
  if (zoom === "month") return month(begins);
  const last = startOfDay(ends, -1), [first, until] = [date(begins), date(last)].map((each) => each.split(" "));
  const years = [begins, last].map((each) => new Date(each).getFullYear());
  if (years[0] !== years[1]) return `${first.join(" ")} ${years[0]} – ${until.join(" ")} ${years[1]}`;
  return `${first[1] === until[1] ? first[0] : first.join(" ")} – ${until.join(" ")} ${years[1]}`;
}

export function label(at, days) {
  if (days <= 1) return clock(at);
  return days <= 8 ? [weekday(at), h("span", { class: "roomy" }, ` ${date(at)}`)] : String(new Date(at).getDate());
}

export function legend() {
  return h("ul", { class: "legend", "aria-label": "What the colours and patterns mean" },
    LEGEND.map(([kind, text]) => h("li", {}, h("span", { class: `piece ${kind}`, "aria-hidden": "true" }), text)));
}

export function week(main) {
  const filter = readFilter(), view = readView(), lines = new Map(), asked = new Set();
  const stale = new Set(); // lines that stay until newer ones arrive
  let range = rangeOf(view), shownKeys = [];
  const scale = h("div", { class: "scale" });
  const heading = h("h1", { class: "range" });
  const needle = h("div", { class: "needle", "aria-hidden": "true" });
  const head = h("div", { class: "row head", role: "row", "aria-rowindex": "1" },
    h("div", { class: "cell machine", role: "columnheader" }, "Machine"),
    h("div", { class: "cell track", role: "columnheader", "aria-label": "Timeline" }, scale));
  const list = new LongList({ label: "Timelines", head, draw, onShown: (rows) => { shownKeys = rows.map(keyOf); ask(); } });
  list.element.append(needle);

  function draw(element, row) {
    const state = stateOf(row), track = h("div", { class: "track-line", role: "img", "aria-label": "Loading" });
    element.dataset.key = keyOf(row);
    element.dataset.state = state;
    element.replaceChildren(
      h("div", { class: "cell machine", role: "cell" },
        h("span", { class: `sign ${needsAttention(row) ? "attention" : state}`, role: "img", "aria-label": saidOf(row), title: saidOf(row) },
          STATES[needsAttention(row) ? "attention" : state].sign),
        h("a", { href: pathOf(row), title: row.name }, row.name), namespaceOf(row)),
      h("div", { class: "cell track", role: "cell" }, track));
    drawTrack(track, lines.get(keyOf(row)), range);
  }

  const ask = debounced(async () => {
    const wanted = shownKeys.filter((key) => (!lines.has(key) || stale.has(key)) && !asked.has(key)).slice(0, AT_ONCE);
    if (!wanted.length) return;
    const current = range;
    for (const key of wanted) { asked.add(key); stale.delete(key); }
    try {
      const found = await post("/api/lines", { from: current.begins, to: current.ends, keys: wanted });
      if (current === range) {
        for (const [key, line] of Object.entries(found)) lines.set(key, line);
        const fresh = new Set(wanted);
        list.refresh((row) => row && fresh.has(keyOf(row)));
      }
    } finally {
      for (const key of wanted) asked.delete(key);
    }
    // They changed, or another week was chosen, while they were asked for.
    if (current !== range || wanted.some((key) => stale.has(key))) ask();
  }, 30);

  function moveTo(at, zoom = view.zoom) {
    Object.assign(view, { at, zoom });
    writeView(view);
    range = rangeOf(view);
    lines.clear();
    stale.clear();
    redraw();
    list.refresh();
  }

  function redraw() {
    heading.textContent = title(range, view.zoom);
    drawScale(scale, range, label);
    list.element.style.setProperty("--days", String(view.zoom === "day" ? 8 : Math.round((range.ends - range.begins) / DAY)));
    for (const button of zooms.children) button.setAttribute("aria-pressed", button.dataset.zoom === view.zoom ? "true" : "false");
    tick();
  }

  function tick() {
    const share = (now() - range.begins) / (range.ends - range.begins);
    needle.hidden = share < 0 || share > 1;
    needle.style.setProperty("--at", String(share));
    if (view.at === null && now() >= range.ends) moveTo(null);
  }

  const zooms = h("div", { class: "zooms", role: "group", "aria-label": "Zoom" }, Object.entries(ZOOMS).map(([zoom, text]) =>
    h("button", { type: "button", "data-zoom": zoom, on: { click: () => moveTo(view.at, zoom) } }, text)));
  const tools = h("div", { class: "tools" }, heading,
    h("div", { class: "steps" },
      h("button", { type: "button", "aria-label": "Earlier", on: { click: () => moveTo(rangeOf(view, -1).begins) } }, "‹"),
      h("button", { type: "button", on: { click: () => moveTo(null) } }, "Now"),
      h("button", { type: "button", "aria-label": "Later", on: { click: () => moveTo(rangeOf(view, 1).begins) } }, "›")),
    zooms);
  const none = emptyNote();
  const update = () => {
    const shown = chosen(filter);
    list.set(shown);
    list.element.hidden = none.draw(shown);
  };
  const bar = filterBar(filter, update);
  main.replaceChildren(h("section", { class: "page week" }, tools, bar.element, none.element, list.element, legend()));
  redraw();
  update();
  const timer = setInterval(tick, tickEvery());
  // What happened since then changes the lines of machines in service, also without a message.
  const refresher = setInterval(() => forget((key) => ["served", "joining", "leaving"].includes(stateOf(machines.get(key) ?? {}))), Math.max(2000, tickEvery() * 20));
  function forget(takes) {
    for (const key of lines.keys()) if (takes(key)) stale.add(key);
    ask();
  }
  const unlisten = listen((said) => {
    bar.draw();
    const changed = new Set((said.rows ?? []).map(keyOf));
    update();
    forget((key) => said.all || said.kinds.length || changed.has(key));
  });
  return { title: "Week", search: bar.search, close: () => { clearInterval(timer); clearInterval(refresher); unlisten(); list.close(); } };
}
