// Starts the console: gets a session, shows the page that the address names, and keeps the bar current.

import { Refused, post, session, start } from "/static/api.js";
import { calendars } from "/static/calendars.js";
import { chooseNamespace, notice } from "/static/dialogs.js";
import { h, show } from "/static/dom.js";
import { fleet } from "/static/fleet.js";
import { machine } from "/static/machine.js";
import { overrides } from "/static/overrides.js";
import { report } from "/static/report.js";
import { clock, isSimulated, long, now, tickEvery } from "/static/time.js";
import { week } from "/static/week.js";

const PAGES = [["/fleet", "Fleet", fleet], ["/week", "Week", week], ["/overrides", "Overrides", overrides], ["/calendars", "Calendars", calendars], ["/report", "Report", report]];
const main = document.getElementById("main"), nav = document.getElementById("nav");
let current = { close: () => {} };

function page() {
  const path = location.pathname.replace(/\/+$/, "");
  const found = PAGES.find(([address]) => path === address);
  if (found) return [found[2], []];
  const [, kind, ...words] = path.split("/").map(decoded);
  if (kind === "machine" && words.length === 2) return [machine, words];
  return path ? [missing, []] : [fleet, []];
}

function missing(main) {
  show(main, h("section", { class: "page closed" }, h("h1", {}, "No such page"),
    h("p", {}, `The console has no page ${location.pathname}.`), h("a", { class: "back", href: "/fleet" }, "‹ Fleet")));
  return { title: "No such page", close: () => {} };
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

function render({ focus = false } = {}) {
  current.close();
  const [draw, words] = page();
  show(nav, PAGES.map(([address, text, each]) => h("a", { href: address, "aria-current": each === draw ? "page" : null }, text)));
  current = draw(main, words);
  document.title = `${current.title} · 5-Spot`;
  document.documentElement.dataset.page = draw.name;
  if (focus) main.focus({ preventScroll: true });
}

function follow(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const address = new URL(link.href);
  if (address.origin !== location.origin || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  history.pushState(null, "", address);
  render({ focus: true });
}

function keys(event) {
  if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && current.search) {
    event.preventDefault();
    current.search.focus();
  }
  const found = PAGES[Number(event.key) - 1];
  if (found) {
    history.pushState(null, "", found[0]);
    render({ focus: true });
  }
}

function tick() {
  const time = document.getElementById("clock");
  time.textContent = `${long(now())} ${clock(now())}`;
  time.classList.toggle("simulated", isSimulated());
  time.title = isSimulated() ? "The time of the schedules is simulated" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function connection() {
  const element = document.getElementById("connection");
  element.textContent = session.problem ? "not connected" : "live";
  element.title = session.problem || "Changes appear by themselves";
  element.classList.toggle("bad", Boolean(session.problem));
}

function theme() {
  const root = document.documentElement, key = "5spot-theme";
  const stored = localStorage.getItem(key);
  if (stored) root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(key, root.dataset.theme);
  });
}

function closed(error) {
  const text = h("p", { role: "alert" }, error.message);
  if (!error.login) return h("section", { class: "page closed" }, h("h1", {}, "5-Spot"), text);
  const token = h("input", { type: "password", name: "token", required: true, autocomplete: "off" });
  const namespace = h("input", { name: "namespace", autocomplete: "off", placeholder: "all" });
  const form = h("form", { class: "card login" }, h("h1", {}, "5-Spot"), h("p", {}, "Give a bearer token of your own for this cluster, for example from kubectl create token. The console has no rights but yours."),
    h("label", {}, h("span", {}, "Token"), token), h("label", {}, h("span", {}, "Namespace, if you may not look at all"), namespace), h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Log in")), text);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await post("/login", { token: token.value.trim(), namespace: namespace.value.trim() });
      location.reload();
    } catch (refused) {
      text.textContent = refused.message;
      text.className = "warning";
    }
  });
  return h("section", { class: "page closed" }, form);
}

// Who the user is; where there is a login, also which namespace is shown, and a way out.
function account() {
  const user = document.getElementById("user");
  user.textContent = user.title = session.user;
  if (session.choice) user.after(h("button", { type: "button", class: "quiet", "data-action": "namespace", on: { click: () => chooseNamespace(session.namespace) } },
    session.namespace ? `in ${session.namespace}` : "all namespaces"));
  if (session.logout) document.getElementById("theme").after(h("button", { type: "button", class: "quiet", "data-action": "logout",
    on: { click: () => post("/logout", {}).then(() => location.reload(), (error) => notice(error.message, true)) } }, "Log out"));
}

async function begin() {
  theme();
  try {
    await start();
  } catch (error) {
    show(main, closed(error instanceof Refused ? error : new Error("The console does not answer.")));
    return;
  }
  account();
  addEventListener("popstate", () => render());
  document.addEventListener("click", follow);
  document.addEventListener("keydown", keys);
  document.addEventListener("connection", connection);
  connection();
  tick();
  setInterval(tick, tickEvery());
  render();
  performance.mark("drawn");
}

begin();
