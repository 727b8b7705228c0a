// Everything that the pages know: rows of machines, kept current by server-sent events, and what is asked for.

import { setClock } from "/static/time.js";

export const machines = new Map();
export const session = { user: "", namespace: "", unread: {}, problem: "", version: "" };
const listeners = new Set();
let feed = null, retry = 0;
// Of a console on this machine: cookies go to every port of a host, what a page stores does not.
const KEY = "5spot-key";

export class Refused extends Error {
  constructor(status, said) {
    super(said.error ?? `The console answered ${status}.`);
    this.status = status;
    this.login = said.login ?? false;
  }
}

async function request(method, path, body) {
  const key = localStorage.getItem(KEY), options = { method, headers: key ? { "X-5spot-Key": key } : {}, cache: "no-store" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options);
  const said = await answer.json().catch(() => ({}));
  // The session is over: the page begins again, which asks for a login where there is one.
  if (answer.status === 401 && session.version) location.reload();
  if (!answer.ok) throw new Refused(answer.status, said);
  return said;
}

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);
export const remove = (path) => request("DELETE", path);
export const keyOf = (row) => `${row.namespace}/${row.name}`;

// Calls the listener with {rows, gone, kinds, all}; returns how to stop that.
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(said) {
  for (const listener of [...listeners]) listener(said);
}

export async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    const { key } = await post("/session", { token });
    localStorage.setItem(KEY, key);
  }
  await readAll();
  connect();
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : resume()));
}

async function readAll() {
  const [said, rows] = await Promise.all([get("/api/session"), get("/api/machines")]);
  Object.assign(session, said);
  setClock(said);
  machines.clear();
  for (const row of rows) machines.set(keyOf(row), row);
}

// A hidden page holds no connection: browsers allow six for each server.
function disconnect() {
  feed?.close();
  feed = null;
}

async function resume() {
  if (feed) return;
  await readAll().catch(() => {});
  tell({ rows: [], gone: [], kinds: [], all: true });
  connect();
}

function connect() {
  disconnect();
  const key = localStorage.getItem(KEY);
  feed = new EventSource(key ? `/api/feed?key=${key}` : "/api/feed");
  feed.onopen = () => report("");
  feed.onmessage = (event) => received(JSON.parse(event.data));
  feed.onerror = () => {
    report("The console does not answer.");
    if (feed?.readyState === EventSource.CLOSED) {
      clearTimeout(retry);
      retry = setTimeout(resume, 2000);
      feed = null;
    }
  };
}

async function received(said) {
  setClock(said);
  report(said.problem);
  if (said.all) {
    const { namespace } = session;
    await readAll().catch(() => {});
    // Another page of this user chose another namespace.
    if (session.namespace !== namespace) return location.reload();
  }
  for (const row of said.rows ?? []) machines.set(keyOf(row), row);
  for (const key of said.gone ?? []) machines.delete(key);
  if (said.all || said.rows?.length || said.gone?.length || said.kinds.length) tell(said);
}

function report(problem) {
  session.problem = problem;
  document.dispatchEvent(new CustomEvent("connection"));
}
