// One machine: what it does, why, what comes next, what happened, and what the user may do about it.

import { get, listen, machines, post } from "/static/api.js";
import { actionButtons } from "/static/dialogs.js";
import { counted, debounced, h, show } from "/static/dom.js";
import { nextOf, pill } from "/static/fleet.js";
import { long, now, relative, short, startOfDay, startOfWeek, tickEvery } from "/static/time.js";
import { drawScale, drawTrack } from "/static/track.js";
import { label, legend } from "/static/week.js";

const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, value)];
const card = (title, ...children) => h("section", { class: "card" }, h("h2", {}, title), children);

function summary(row) {
  const pairs = [["Schedule", row.schedule], ["Next", nextOf(row)],
    ["Since", row.since && `${short(Date.parse(row.since))}, ${relative(Date.parse(row.since))}`],
    ["Override", row.override && `${row.override.name}: ${row.override.state} until ${short(Date.parse(row.override.until))}${row.override.by ? `, by ${row.override.by}` : ""}${row.override.reason ? `: ${row.override.reason}` : ""}`],
    ["Held up by", row.heldUp], ["Cluster", row.cluster], ["Machine", row.machine && `${row.machine}, ${row.machinePhase ?? "not seen yet"}`], ["Node", row.node]];
  return card("Now", h("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(([name, value]) => fact(name, value))));
}

// Rules name fields in backticks.
const coded = (text) => text.split("`").map((part, number) => (number % 2 ? h("code", {}, part) : part));

function why(found) {
  const rules = found.unread?.length
    ? [h("p", {}, "You may not read all that the rules look at, so this rests on what the operator reports. Not read:"),
      h("ul", {}, found.unread.map((each) => h("li", {}, each)))]
    : [h("p", { class: "rule" }, h("span", { class: "sign served", "aria-hidden": "true" }, "✓ "), "The rule that decides: ", coded(found.rule)),
      h("p", {}, "What it does: ", coded(found.does)),
      found.passed.length ? h("details", {}, h("summary", {}, counted(found.passed.length, "rule before it does not apply", "rules before it do not apply")), h("ol", {}, found.passed.map((each) => h("li", {}, coded(each))))) : null];
  return card("Why", h("p", { class: "lead" }, found.headline), found.meaning && !found.headline.includes(found.meaning) ? h("p", {}, coded(found.meaning)) : null,
    found.differs ? h("p", { class: "warning" }, found.differs) : null, rules,
    h("dl", { class: "facts" }, Object.entries(found.facts).map(([name, text]) => fact(name, text))),
    found.changes.length ? [h("h3", {}, "What changes it"), h("ul", {}, found.changes.map((each) => h("li", {}, coded(each))))] : null);
}

// How far a shutdown is; the bar is about time, the list about pods.
function leaving({ since, by, pods, said }) {
  const bar = h("progress", { max: "1", "aria-label": "Time of the shutdown" }), words = h("p", { class: "dim" });
  const tick = () => {
    bar.value = by ? Math.min(1, (now() - since) / (by - since)) : 0;
    words.textContent = `since ${short(since)}${by ? `; removed ${relative(by)} at the latest, ${short(by)}` : ""}`;
  };
  tick();
  const left = pods === null ? null : pods.length ? [h("h3", {}, counted(pods.length, "pod has not left", "pods have not left")), h("ul", { class: "pods" }, pods.slice(0, 50).map((pod) => h("li", {}, pod)))] : h("p", {}, "All pods that must leave have left.");
  return { element: h("section", { class: "card leaving-card" }, h("h2", {}, "Leaving"), h("p", { class: "lead" }, said), bar, words, left), tick };
}

function conditions(found) {
  return card("Conditions", h("ul", { class: "conditions" }, found.map((each) => h("li", {},
    h("span", { class: `mark ${each.status.toLowerCase()}` }, each.status === "True" ? "✓ yes" : each.status === "False" ? "– no" : "? unknown"),
    h("b", {}, each.type), h("span", { class: "dim" }, ` ${each.reason}, since ${short(Date.parse(each.lastTransitionTime))}`),
    each.message ? h("p", {}, each.message) : null))));
}

function events(found) {
  if (found === null) return card("Events", h("p", { class: "dim" }, "You may not read its Events."));
  if (!found.length) return card("Events", h("p", { class: "dim" }, "None in the last hour."));
  return card("Events", h("ol", { class: "events" }, found.map((each) => h("li", { class: each.warning ? "bad" : "" },
    h("time", { datetime: each.at, title: long(Date.parse(each.at)) }, short(Date.parse(each.at))), h("b", {}, each.reason), " ", each.note))));
}

export function machine(main, [namespace, name]) {
  const key = `${namespace}/${name}`, path = `/api/machines/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const head = h("div", { class: "headline" }), buttons = h("div", { class: "buttons actions" }), body = h("div", { class: "cards" });
  const track = h("div", { class: "track-line", role: "img", "aria-label": "Timeline" }), scale = h("div", { class: "scale" });
  const needle = h("div", { class: "needle", "aria-hidden": "true" });
  const strip = h("section", { class: "card strip", "aria-label": "This week and the next" }, scale, h("div", { class: "strip-line" }, track, needle), legend());
  const range = { begins: startOfWeek(now()), ends: startOfDay(startOfWeek(now()), 14) };
  const text = h("pre", { tabindex: "0" }), yaml = h("details", { class: "card yaml" }, h("summary", {}, "YAML"), text);
  let progress = null, offered = "";
  main.replaceChildren(h("section", { class: "page machine" }, head, buttons, strip, body));
  drawScale(scale, range, (at) => label(at, 8));
  strip.style.setProperty("--days", "14");

  function drawHead(row) {
    show(head, h("a", { class: "back", href: "/fleet" }, "‹ Fleet"), h("h1", {}, name, h("span", { class: "dim" }, ` ${namespace}`)),
      pill(row),
      (row.attention ?? []).map((each) => h("p", { class: "warning" }, h("span", { "aria-hidden": "true" }, "▲ "), each)));
  }

  // Only when they change: a button that is drawn again loses the focus.
  function drawButtons({ row, rights, killSwitch }) {
    const offers = JSON.stringify([rights, killSwitch]);
    if (offers !== offered) show(buttons, actionButtons(row, rights, killSwitch));
    offered = offers;
  }

  // The YAML stays in its place: what is drawn again loses its scroll position, the focus and the selection.
  function drawCards(written, ...cards) {
    if (text.textContent !== written) text.textContent = written;
    if (yaml.parentNode !== body) show(body, yaml);
    while (body.firstChild !== yaml) body.firstChild.remove();
    yaml.before(...cards.filter(Boolean));
  }

  function drawGone() {
    progress = null;
    offered = "";
    show(head, h("a", { class: "back", href: "/fleet" }, "‹ Fleet"), h("h1", {}, name, h("span", { class: "dim" }, ` ${namespace}`)));
    show(buttons);
    show(track);
    show(body, h("p", { class: "warning" }, `There is no ScheduledMachine ${name} in namespace ${namespace}.`));
  }

  async function line() {
    const found = await post("/api/lines", { from: range.begins, to: range.ends, keys: [key] });
    drawTrack(track, found[key], range);
    needle.style.setProperty("--at", String((now() - range.begins) / (range.ends - range.begins)));
  }

  async function load() {
    try {
      const found = await get(path);
      drawHead(found.row);
      drawButtons(found);
      progress = found.leaving && leaving(found.leaving);
      drawCards(found.yaml, progress?.element, why(found.why),
        h("div", { class: "stack" }, summary(found.row), conditions(found.conditions)), events(found.events));
      await line();
    } catch (error) {
      if (error.status === 404) drawGone();
      else show(body, h("p", { class: "warning" }, error.message));
    }
  }

  if (machines.has(key)) drawHead(machines.get(key));
  load();
  const again = debounced(load, 400);
  const timer = setInterval(line, 15_000), ticking = setInterval(() => progress?.tick(), tickEvery());
  const unlisten = listen((said) => {
    if (said.all || said.kinds.length || said.gone?.includes(key) || said.rows?.some((row) => `${row.namespace}/${row.name}` === key)) again();
  });
  return { title: name, close: () => { clearInterval(timer); clearInterval(ticking); unlisten(); } };
}

