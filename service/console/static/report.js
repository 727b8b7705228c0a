// The report: hours in service and free, punctuality, time to Ready; from the last ten services of each machine.

import { post } from "/static/api.js";
import { h, show, svg } from "/static/dom.js";
import { date, now, span, startOfDay, weekday } from "/static/time.js";

const DAYS = 14, HEIGHT = 180, WIDTH = 640, SCALE = 62;
const hours = (list) => list.reduce((sum, each) => sum + each, 0);
const many = (number) => Math.round(number).toLocaleString("en");

function tile(value, text) {
  return h("div", { class: "tile" }, h("b", {}, value), h("span", {}, text));
}

// A reason is one word for programs: WindowClosed.
const inWords = (reason) => reason.replace(/([a-z])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);

// Round numbers for the scale: three to six of them.
function steps(most) {
  const size = 10 ** Math.floor(Math.log10(most / 3));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= most / 5);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, number) => number * step);
}

function chart(found, edges) {
  const most = Math.max(1, ...found.servedHours.map((each, day) => each + found.freeHours[day]));
  const wide = (WIDTH - SCALE) / found.servedHours.length;
  const lines = steps(most).flatMap((value) => {
    const y = HEIGHT * (1 - value / most);
    return [svg("line", { class: "grid", x1: SCALE, x2: WIDTH, y1: y, y2: y }), svg("text", { x: SCALE - 6, y: y + 4, "text-anchor": "end" }, many(value))];
  });
  const bars = found.servedHours.flatMap((served, day) => {
    const free = found.freeHours[day], x = SCALE + day * wide + wide * 0.15, width = wide * 0.7;
    const high = (served / most) * HEIGHT, rest = (free / most) * HEIGHT;
    return [svg("rect", { class: "bar-served", x, width, y: HEIGHT - high, height: high }, svg("title", {}, `${date(edges[day])}: ${served} h in service`)),
      svg("rect", { class: "bar-free", x, width, y: HEIGHT - high - rest, height: rest }, svg("title", {}, `${date(edges[day])}: ${free} h free`)),
      svg("text", { x: x + width / 2, y: HEIGHT + 16, "text-anchor": "middle", class: "day-name" }, weekday(edges[day])),
      svg("text", { x: x + width / 2, y: HEIGHT + 30, "text-anchor": "middle", class: "day-number" }, String(new Date(edges[day]).getDate()))];
  });
  return svg("svg", { viewBox: `0 -8 ${WIDTH} ${HEIGHT + 44}`, role: "img", "aria-label": `Hours in service and free on ${found.servedHours.length} days` }, lines, bars);
}

// To the second below ten minutes: most machines are Ready within few.
function exact(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60 || whole >= 600) return span(whole * 1000);
  return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
}

const early = (seconds) => seconds < -0.5 ? `${exact(-seconds)} early` : seconds < 0.5 ? "at the opening" : `${exact(seconds)} late`;

// Between 0 and 1, the same for the same number: dots lie beside each other, in no pattern.
const scattered = (number) => Math.abs(Math.sin(number * 12.9898) * 43758.5453) % 1;

// A dot for each service, with lines at the median and at nine in ten; `words` says a value.
function distribution(found, label, words) {
  const low = Math.min(0, ...found.values), whole = Math.max(1, ...found.values) - low;
  const place = (value) => 8 + ((value - low) / whole) * (WIDTH - 16);
  const dots = found.values.map((value, number) => svg("circle", { cx: place(value), cy: 12 + scattered(number) * 46, r: 2.5 }, svg("title", {}, words(value))));
  const at = (value, text, y) => [svg("line", { x1: place(value), x2: place(value), y1: 4, y2: 68 }),
    svg("text", { x: place(value), y, "text-anchor": place(value) > WIDTH * 0.7 ? "end" : "start" }, `${text} ${words(value)}`)];
  const zero = [svg("line", { class: "zero", x1: place(0), x2: place(0), y1: 0, y2: 72 }),
    svg("text", { x: place(0), y: -5, "text-anchor": place(0) > WIDTH * 0.7 ? "end" : low < 0 ? "middle" : "start" }, words(0))];
  return svg("svg", { viewBox: `0 -26 ${WIDTH} 138`, class: "dots", role: "img", "aria-label": `${label}: median ${words(found.median)}, nine in ten within ${words(found.ninth)}` },
    dots, at(found.median, "median", 84), at(found.ninth, "nine in ten", 106), zero);
}

function draw(found, edges) {
  if (!found.services) return h("p", { class: "empty" }, "No machine has served yet: there is nothing to report.");
  const days = h("table", {}, h("thead", {}, h("tr", {}, ["Day", "In service, h", "Free, h"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, found.servedHours.map((served, day) => h("tr", {}, h("td", {}, `${weekday(edges[day])} ${date(edges[day])}`), h("td", {}, many(served)), h("td", {}, many(found.freeHours[day]))))));
  return [
    h("div", { class: "tiles" }, tile(`${many(hours(found.servedHours))} h`, "in service"), tile(`${many(hours(found.freeHours))} h`, "free for others"),
      found.punctual === null ? null : tile(`${Math.round(found.punctual * 100)} %`, "Ready by the opening, within a minute"),
      found.toReady ? tile(exact(found.toReady.median), "to Ready, median") : null, tile(many(found.services), "services")),
    h("section", { class: "card" }, h("h2", {}, "Hours by day"), h("p", { class: "key" }, h("span", { class: "piece served", "aria-hidden": "true" }), " in service ", h("span", { class: "piece free", "aria-hidden": "true" }), " free"), chart(found, edges),
      h("details", {}, h("summary", {}, "As a table"), days)),
    h("div", { class: "stack" },
      found.toReady ? h("section", { class: "card" }, h("h2", {}, "Time to Ready"), distribution(found.toReady, "Time to Ready", exact)) : null,
      found.late ? h("section", { class: "card" }, h("h2", {}, "Punctuality"), h("p", { class: "dim" }, "When Nodes were Ready, counted from the opening of their window."), distribution(found.late, "Punctuality", early)) : null,
      Object.keys(found.reasons).length ? h("section", { class: "card" }, h("h2", {}, "Why services ended"), h("ul", { class: "reasons" },
        Object.entries(found.reasons).map(([reason, count]) => h("li", {}, h("b", {}, many(count)), ` ${inWords(reason)}`)),
        found.undrained ? h("li", {}, h("b", {}, many(found.undrained)), " with pods still on the Node when the time for the drain was over") : null)) : null)];
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
