// The report: hours in service and free, punctuality, time to Ready; from the last ten services of each machine.

import { post } from "/static/api.js";
import { h, show, svg } from "/static/dom.js";
import { date, now, span, startOfDay, weekday } from "/static/time.js";

const DAYS = 14, HEIGHT = 180, WIDTH = 640;
const hours = (list) => list.reduce((sum, each) => sum + each, 0);
const many = (number) => Math.round(number).toLocaleString("en");

function tile(value, text) {
  return h("div", { class: "tile" }, h("b", {}, value), h("span", {}, text));
}

function chart(found, edges) {
  const most = Math.max(1, ...found.servedHours.map((each, day) => each + found.freeHours[day]));
  const wide = WIDTH / found.servedHours.length;
  const bars = found.servedHours.flatMap((served, day) => {
    const free = found.freeHours[day], x = day * wide + wide * 0.15, width = wide * 0.7;
    const high = (served / most) * HEIGHT, rest = (free / most) * HEIGHT;
    return [svg("rect", { class: "bar-served", x, width, y: HEIGHT - high, height: high }, svg("title", {}, `${date(edges[day])}: ${served} h in service`)),
      svg("rect", { class: "bar-free", x, width, y: HEIGHT - high - rest, height: rest }, svg("title", {}, `${date(edges[day])}: ${free} h free`)),
      svg("text", { x: x + width / 2, y: HEIGHT + 16, "text-anchor": "middle" }, weekday(edges[day])),
      svg("text", { x: x + width / 2, y: HEIGHT + 30, "text-anchor": "middle", class: "faint" }, String(new Date(edges[day]).getDate()))];
  });
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 36}`, role: "img", "aria-label": `Hours in service and free on ${found.servedHours.length} days` }, bars);
}

const early = (seconds) => seconds < -0.5 ? `${span(-seconds * 1000)} early` : seconds < 0.5 ? "at the opening" : `${span(seconds * 1000)} late`;

// Between 0 and 1, the same for the same number: dots lie beside each other, in no pattern.
const scattered = (number) => Math.abs(Math.sin(number * 12.9898) * 43758.5453) % 1;

// A dot for each service, with lines at the median and at nine in ten; `words` says a value.
function distribution(found, label, words) {
  const low = Math.min(0, ...found.values), whole = Math.max(1, ...found.values) - low;
  const place = (value) => 8 + ((value - low) / whole) * (WIDTH - 16);
  const dots = found.values.map((value, number) => svg("circle", { cx: place(value), cy: 12 + scattered(number) * 46, r: 2.5 }, svg("title", {}, words(value))));
  const at = (value, text, y) => [svg("line", { x1: place(value), x2: place(value), y1: 4, y2: 68 }),
    svg("text", { x: place(value), y, "text-anchor": place(value) > WIDTH * 0.7 ? "end" : "start" }, `${text} ${words(value)}`)];
  return svg("svg", { viewBox: `0 0 ${WIDTH} 112`, class: "dots", role: "img", "aria-label": `${label}: median ${words(found.median)}, nine in ten within ${words(found.ninth)}` },
    dots, at(found.median, "median", 84), at(found.ninth, "nine in ten", 106), low < 0 ? svg("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 72 }) : null);
}

function draw(found, edges) {
  if (!found.services) return h("p", { class: "empty" }, "No machine has served yet: there is nothing to report.");
  const days = h("table", {}, h("thead", {}, h("tr", {}, ["Day", "In service, h", "Free, h"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, found.servedHours.map((served, day) => h("tr", {}, h("td", {}, `${weekday(edges[day])} ${date(edges[day])}`), h("td", {}, many(served)), h("td", {}, many(found.freeHours[day]))))));
  return [
    h("div", { class: "tiles" }, tile(`${many(hours(found.servedHours))} h`, "in service"), tile(`${many(hours(found.freeHours))} h`, "free for others"),
      found.punctual === null ? null : tile(`${Math.round(found.punctual * 100)} %`, "Ready by the opening, within a minute"),
      found.toReady ? tile(span(found.toReady.median * 1000), "to Ready, median") : null, tile(many(found.services), "services")),
    h("section", { class: "card" }, h("h2", {}, "Hours by day"), h("p", { class: "key" }, h("span", { class: "piece served", "aria-hidden": "true" }), " in service ", h("span", { class: "piece free", "aria-hidden": "true" }), " free"), chart(found, edges),
      h("details", {}, h("summary", {}, "As a table"), days)),
    found.toReady ? h("section", { class: "card" }, h("h2", {}, "Time to Ready"), distribution(found.toReady, "Time to Ready", (seconds) => span(seconds * 1000))) : null,
    found.late ? h("section", { class: "card" }, h("h2", {}, "Punctuality"), h("p", { class: "dim" }, "When Nodes were Ready, counted from the opening of their window."), distribution(found.late, "Punctuality", early)) : null,
    Object.keys(found.reasons).length ? h("section", { class: "card" }, h("h2", {}, "Why services ended"), h("ul", { class: "reasons" },
      Object.entries(found.reasons).map(([reason, count]) => h("li", {}, h("b", {}, many(count)), ` ${reason}`)),
      found.undrained ? h("li", {}, h("b", {}, many(found.undrained)), " with pods still on the Node when the time for the drain was over") : null)) : null];
}

export function report(main) {
  const body = h("div", { class: "cards single" });
  main.replaceChildren(h("section", { class: "page" }, h("h1", {}, "Report"), h("p", { class: "dim" }, `The last ${DAYS} days, from the last ten services of each machine.`), body));
  async function load() {
    const edges = Array.from({ length: DAYS + 1 }, (_, day) => startOfDay(now(), day - DAYS + 1));
    show(body, draw(await post("/api/report", { edges }), edges));
  }
  load();
  const timer = setInterval(load, 60_000);
  return { title: "Report", close: () => clearInterval(timer) };
}
