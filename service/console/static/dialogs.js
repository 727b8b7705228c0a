// What a user can do: each dialog says what will happen before anything is sent.

import { post, remove } from "/static/api.js";
import { h } from "/static/dom.js";
import { isoDay, now, startOfDay } from "/static/time.js";

export function notice(text, bad = false) {
  const element = h("p", { class: bad ? "notice bad" : "notice" }, text);
  document.getElementById("notices").append(element);
  setTimeout(() => element.remove(), bad ? 12_000 : 8000);
}

async function sent(work) {
  try {
    const said = await work();
    for (const line of said.said ?? []) notice(line);
    return true;
  } catch (error) {
    notice(error.message, true);
    return false;
  }
}

function ask({ title, text, fields = [], yes, danger = false, send }) {
  const form = h("form", { method: "dialog" }, h("h2", {}, title), text ? h("p", {}, text) : null, fields,
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
      h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes)));
  const dialog = h("dialog", { "aria-label": title, on: { close: () => dialog.remove() } }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await sent(() => send(new FormData(form)))) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
}

const field = (label, input) => h("label", {}, h("span", {}, label), input);
const reason = () => field("Why (others see it)", h("input", { name: "reason", maxlength: "256", autocomplete: "off" }));
const lengths = () => field("For how long", h("select", { name: "minutes" }, [[30, "30 minutes"], [60, "1 hour"], [120, "2 hours"],
  [240, "4 hours"], [480, "8 hours"], [1440, "1 day"], [10080, "7 days"]].map(([minutes, text]) =>
  h("option", { value: String(minutes), selected: minutes === 60 }, text))));

function act(row, action, given) {
  const body = { action, reason: given.get("reason") ?? "" };
  if (given.get("minutes")) body.minutes = Number(given.get("minutes"));
  return post(`/api/machines/${row.namespace}/${row.name}/actions`, body);
}

const ACTIONS = {
  extend: ["Extend", "Keeps it in service beyond the close of its window; out of service, puts it into service now.", true],
  suspend: ["Suspend", "Takes it out of service now, as a closing window does: pods leave first.", true],
  skip: ["Skip next window", "Leaves out the next window. The current one is as before.", false],
  resume: ["Back to schedule", "Ends what overrides its schedule.", false],
};

export function actionButtons(row, rights, killed) {
  const shown = rights.override ? ["extend", "suspend", "skip", ...(rights.resume ? ["resume"] : [])] : [];
  const buttons = shown.map((action) => {
    const [title, text, timed] = ACTIONS[action];
    return h("button", { type: "button", "data-action": action, on: { click: () => ask({ title: `${title}: ${row.name}`, text, yes: title,
      fields: [timed ? lengths() : null, action === "resume" ? null : reason()], send: (given) => act(row, action, given) }) } }, title);
  });
  if (rights.kill) buttons.push(killButton(row, killed));
  return buttons;
}

function killButton(row, killed) {
  const title = killed ? "Turn kill switch off" : "Kill switch";
  const text = killed ? "The machine returns to its schedule." : "Removes the machine at once, without waiting for pods to leave, and keeps it out until the switch is off.";
  const confirm = field(`Type ${row.name} to confirm`, h("input", { name: "name", required: true, autocomplete: "off" }));
  return h("button", { type: "button", class: "danger", "data-action": "kill", on: { click: () => ask({ title: `${title}: ${row.name}`, text,
    yes: title, danger: !killed, fields: [confirm],
    send: (given) => post(`/api/machines/${row.namespace}/${row.name}/kill-switch`, { on: !killed, name: given.get("name") }) }) } }, title);
}

export function chooseNamespace(shown) {
  ask({ title: "Namespace", yes: "Show", fields: [field("Empty for all", h("input", { name: "namespace", value: shown, autocomplete: "off" }))],
    send: async (given) => {
      await post("/namespace", { namespace: given.get("namespace").trim() });
      location.reload();
      return {};
    } });
}

export function endButton(override) {
  return h("button", { type: "button", class: "quiet", "data-action": "end", on: { click: () => ask({ title: `End override ${override.name}?`,
    text: "Its machines return to what their schedules, or older overrides, say.", yes: "End it",
    send: () => remove(`/api/overrides/${override.namespace}/${override.name}`) }) } }, "End");
}

export function newOverride(namespace, machines) {
  const evening = `${isoDay(startOfDay(now(), new Date(now()).getHours() < 22 ? 0 : 1))}T22:00`;
  ask({ title: "New override", yes: "Create",
    fields: [field("Namespace", h("input", { name: "namespace", required: true, value: namespace, autofocus: !namespace })),
      field("Machines, separated by commas", h("input", { name: "machines", required: true, value: machines, autofocus: Boolean(namespace) })),
      field("They are", h("select", { name: "state" }, [["Open", "in service"], ["Closed", "out of service"], ["Scheduled", "on schedule, in spite of older overrides"]]
        .map(([value, text]) => h("option", { value }, text)))),
      field("Until (your time)", h("input", { name: "until", type: "datetime-local", required: true, value: evening })), reason()],
    send: (given) => post("/api/overrides", { namespace: given.get("namespace").trim(),
      machines: given.get("machines").split(",").map((each) => each.trim()).filter(Boolean), state: given.get("state"),
      until: new Date(given.get("until")).toISOString(), reason: given.get("reason") }) });
}
