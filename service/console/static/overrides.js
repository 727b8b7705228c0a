// Overrides: who made them, what they say, until when; and how to end them.

import { get, listen, session } from "/static/api.js";
import { endButton, newOverride } from "/static/dialogs.js";
import { debounced, h, show } from "/static/dom.js";
import { relative, short } from "/static/time.js";

const ORDER = ["in force", "to come", "not accepted", "over"];
const SIGNS = { "in force": "●", "to come": "◔", "not accepted": "▲", over: "○" };

function row(found, rights) {
  const until = Date.parse(found.until), from = found.from ? Date.parse(found.from) : null;
  const over = found.standing === "over";
  return h("tr", { class: over ? "over" : "" },
    h("td", {}, h("span", { class: `pill standing-${found.standing.replace(" ", "-")}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[found.standing]} `), found.standing)),
    h("td", {}, h("b", {}, found.target), h("span", { class: "dim" }, ` ${found.namespace}`)),
    h("td", {}, found.state),
    h("td", {}, from ? `${short(from)} – ` : "until ", short(until), h("span", { class: "dim" }, ` ${over ? "" : "ends "}${relative(until)}`)),
    h("td", {}, found.requestedBy ?? ""), h("td", {}, found.reason ?? "", found.problem ? h("p", { class: "warning" }, found.problem) : null),
    h("td", {}, rights.delete && !over ? endButton(found) : null));
}

export function overrides(main) {
  const body = h("tbody"), buttons = h("div", { class: "buttons" }), empty = h("p", { class: "empty", hidden: true }, "Every machine follows its schedule: there is no override.");
  const table = h("div", { class: "card wide", tabindex: "0", role: "region", "aria-label": "Overrides" }, h("table", {}, h("thead", {}, h("tr", {},
    ["Now", "Machines", "They are", "When", "By", "Why"].map((each) => h("th", { scope: "col" }, each)), h("th", { scope: "col" }, h("span", { class: "unseen" }, "End")))), body));
  main.replaceChildren(h("section", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Overrides"), buttons),
    session.unread.ScheduleOverride ? h("p", { class: "warning" }, session.unread.ScheduleOverride) : null, empty, table));
  async function load() {
    const found = await get("/api/overrides");
    const sorted = found.overrides.sort((a, b) => ORDER.indexOf(a.standing) - ORDER.indexOf(b.standing) || a.until.localeCompare(b.until));
    show(body, sorted.map((each) => row(each, found.rights)));
    table.hidden = !sorted.length;
    empty.hidden = sorted.length > 0;
    show(buttons, found.rights.create ? h("button", { type: "button", class: "primary", "data-action": "new",
      on: { click: () => newOverride(session.namespace, "") } }, "New override") : null);
  }
  load();
  const again = debounced(load, 300);
  const timer = setInterval(load, 30_000);
  const unlisten = listen((said) => { if (said.all || said.kinds.includes("ScheduleOverride")) again(); });
  return { title: "Overrides", close: () => { clearInterval(timer); unlisten(); } };
}
