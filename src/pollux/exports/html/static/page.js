// For every page: theme, keys, the list of keys, and times in the reader's zone.
const root = document.documentElement;
root.classList.add("js");

const storage = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* the choice lasts until the page is closed */ } },
};
const theme = storage.get("pollux-theme");
if (theme === "light" || theme === "dark") root.dataset.theme = theme;

const actions = {
  theme() {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    storage.set("pollux-theme", root.dataset.theme);
  },
  help() { document.getElementById("keys")?.showModal(); },
  close() { document.getElementById("keys")?.close(); },
  search() { const box = document.getElementById("search"); box.focus(); box.select(); },
};
const keys = { t: "theme", "?": "help", "/": "search" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, dialog")) return;
  const action = actions[keys[event.key]];
  if (action) { event.preventDefault(); action(); }
});
addEventListener("click", (event) => {
  const name = event.target.closest?.("[data-do]")?.dataset.do;
  if (name && actions[name]) actions[name]();
});

// The file has times in UTC, as text and in `datetime`.
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number) => String(number).padStart(2, "0");
const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
const isoDay = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const dayWords = (at) => `${WEEKDAYS[at.getDay()]} ${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}`;
const forms = {
  clock,
  second: (at) => `${clock(at)}:${two(at.getSeconds())}`,
  day: dayWords,
  minute: (at) => `${isoDay(at)} ${clock(at)}`,
  full: (at) => `${dayWords(at)}, ${clock(at)}`,
  until: (at, before) => (before && isoDay(before) === isoDay(at) ? clock(at) : forms.full(at)),
};
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const isUtc = /^(Etc\/)?(UTC|GMT|UCT|Zulu|Universal|Greenwich)$/.test(zone);

function localize() {
  let before;
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    time.textContent = forms[time.dataset.form ?? "clock"](at, before);
    before = at;
  }
  for (const label of document.querySelectorAll(".zone")) label.textContent = "";
  document.getElementById("zone").textContent = `Times are in your time zone, ${zone.replace(/_/g, " ")}.`;
}

addEventListener("DOMContentLoaded", () => {
  for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
  if (!isUtc) localize();
});
