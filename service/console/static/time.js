// The time of schedules, which a demo lets run faster than real time, and instants in words.

const MINUTE = 60_000, HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
let base = Date.now(), measured = performance.now(), speed = 1;

export function setClock(said) {
  base = said.now;
  measured = performance.now();
  speed = said.speed;
}

export const now = () => base + (performance.now() - measured) * speed;
export const isSimulated = () => speed !== 1 || Math.abs(now() - Date.now()) > 5 * MINUTE;
export const tickEvery = () => (speed > 1 ? Math.max(100, 20_000 / speed) : 1000);

// Thousands of instants are written while a list scrolls: Intl would take too long.
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const two = (number) => String(number).padStart(2, "0");
export function clock(at) {
  const moment = new Date(at);
  return `${two(moment.getHours())}:${two(moment.getMinutes())}`;
}
export const weekday = (at) => WEEKDAYS[new Date(at).getDay()];
export function date(at) {
  const moment = new Date(at);
  return `${moment.getDate()} ${MONTHS[moment.getMonth()].slice(0, 3)}`;
}
export const long = (at) => `${weekday(at)} ${date(at)} ${new Date(at).getFullYear()}`;
export const month = (at) => `${MONTHS[new Date(at).getMonth()]} ${new Date(at).getFullYear()}`;

export function short(at) {
  const distance = Math.abs(at - now());
  if (startOfDay(at) === startOfDay(now())) return clock(at);
  return distance < 6 * DAY ? `${weekday(at)} ${clock(at)}` : `${date(at)} ${clock(at)}`;
}

export function span(length) {
  const units = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", 1000]];
  const first = units.findIndex(([, size]) => length >= size);
  if (first < 0) return "0 s";
  const [unit, size] = units[first];
  const count = Math.floor(length / size), next = units[first + 1];
  const rest = next && first < 2 ? Math.floor((length - count * size) / next[1]) : 0;
  return rest ? `${count} ${unit} ${rest} ${next[0]}` : `${count} ${unit}`;
}

export function relative(at) {
  const distance = at - now();
  if (Math.abs(distance) < 1000) return "now";
  return distance > 0 ? `in ${span(distance)}` : `${span(-distance)} ago`;
}

export function startOfDay(at, days = 0) {
  const moment = new Date(at);
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate() + days).getTime();
}

export function startOfWeek(at) {
  return startOfDay(at, -((new Date(at).getDay() + 6) % 7));
}

export function startOfMonth(at, months = 0) {
  const moment = new Date(at);
  return new Date(moment.getFullYear(), moment.getMonth() + months, 1).getTime();
}

export function isoDay(at) {
  const moment = new Date(at);
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

export function fromIsoDay(text) {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text ?? "");
  return found ? new Date(+found[1], found[2] - 1, +found[3]).getTime() : null;
}
