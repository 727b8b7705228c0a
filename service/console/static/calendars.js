// Calendars: where their dates come from, and which come next.

import { get, listen, session } from "/static/api.js";
import { counted, debounced, h, show } from "/static/dom.js";
import { DAY, fromIsoDay, long, now, startOfDay } from "/static/time.js";

function source({ spec, ics }) {
  const parts = [];
  if (spec.holidays) parts.push(`public holidays of ${[spec.holidays.country, spec.holidays.subdivision].filter(Boolean).join("-")}`);
  if (spec.dates?.length) parts.push(counted(spec.dates.length, "date", "dates"));
  if (spec.yearly?.length) parts.push(counted(spec.yearly.length, "day of every year", "days of every year"));
  if (ics) parts.push("an iCalendar file");
  return parts.join(", ") || "no dates";
}

function ahead(day) {
  const days = Math.round((fromIsoDay(day) - startOfDay(now())) / DAY);
  return days < 1 ? "today" : days === 1 ? "tomorrow" : `in ${days} days`;
}

const users = (count) => count ? `${counted(count, "machine uses", "machines use")} it` : "no machine uses it";

function calendar(found) {
  const ready = found.status.conditions?.find((each) => each.type === "Ready");
  const dates = found.status.nextDates ?? [];
  return h("section", { class: "card" }, h("h2", {}, found.name, h("span", { class: "dim" }, ` ${found.namespace || "every namespace"}`)),
    h("p", { class: "dim" }, `${source(found)}; ${users(found.machines)}`),
    ready?.status === "False" ? h("p", { class: "warning" }, ready.message) : null,
    h("ol", { class: "dates" }, dates.map((each) => h("li", {}, h("time", { datetime: each.date }, long(fromIsoDay(each.date))), h("b", {}, each.name ?? ""), h("span", { class: "dim" }, ahead(each.date))))),
    dates.length ? null : h("p", { class: "dim" }, "No date is ahead."));
}

export function calendars(main) {
  const body = h("div", { class: "cards" });
  main.replaceChildren(h("section", { class: "page" }, h("h1", {}, "Calendars"),
    ["ScheduleCalendar", "ClusterScheduleCalendar"].map((kind) => session.unread[kind] ? h("p", { class: "warning" }, session.unread[kind]) : null), body));
  async function load() {
    const found = await get("/api/calendars");
    show(body, found.map(calendar), found.length ? null : h("p", { class: "empty" }, "There is no calendar. A schedule names one in its exceptions."));
  }
  load();
  const again = debounced(load, 300);
  const unlisten = listen((said) => { if (said.all || said.kinds.length) again(); });
  return { title: "Calendars", close: unlisten };
}
