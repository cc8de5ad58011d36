// The list of sessions: filtered by words, grouped by project or by day, in pages.
Object.assign(keys, { g: "group" });

const PAGE = 100;
const shelves = () => document.getElementById("shelves");
let rows, projectPages;

function load() {
  if (rows) return;
  projectPages = [...shelves().children];
  rows = [...document.querySelectorAll(".shelf tbody tr")].map((row) => {
    const time = row.querySelector("time");
    const day = time ? isoDay(new Date(time.dateTime)) : row.dataset.day;
    return { row, day, body: row.parentElement, at: time?.dateTime ?? "",
      words: `${row.textContent} ${day} ${row.dataset.day}`.toLowerCase() };
  });
}

function filter(query) {
  load();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of rows) {
    entry.row.hidden = !words.every((word) => entry.words.includes(word));
    shown += !entry.row.hidden;
  }
  for (const shelf of document.querySelectorAll(".shelf"))
    shelf.hidden = !shelf.querySelector("tbody tr:not([hidden])");
  shelves().classList.toggle("all", words.length > 0);
  document.getElementById("none").hidden = shown > 0;
  document.getElementById("hits").textContent = words.length ? `${shown} of ${rows.length}` : "";
}

actions.group = () => {
  load();
  const isByDay = shelves().classList.toggle("by-day");
  document.querySelector("[data-do=group]").textContent = isByDay ? "By project" : "By day";
  if (isByDay) {
    shelves().replaceChildren(...pagesByDay());
  } else {
    for (const { row, body } of rows) body.append(row);
    shelves().replaceChildren(...projectPages);
  }
  if (location.hash) location.hash = "page-1";
  filter(document.getElementById("search").value);
};

function node(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function pagesByDay() {
  const head = document.querySelector(".shelf thead"), table = head.parentElement;
  const days = new Map();
  for (const { row, day } of [...rows].sort((a, b) => (a.at < b.at ? 1 : -1))) days.set(day, [...(days.get(day) ?? []), row]);
  const pages = [];
  let room = 0;
  for (const [day, members] of days) {
    if (room <= 0) { pages.push(node("div", "page")); room = PAGE; }
    const list = table.cloneNode(false);
    list.append(head.cloneNode(true), node("tbody", "", ...members));
    const size = `${members.length} ${members.length === 1 ? "session" : "sessions"}`;
    pages.at(-1).append(node("section", "shelf", node("h2", "", day), node("p", "about", size), list));
    room -= members.length;
  }
  pages.forEach((page, index) => { page.id = `page-${index + 1}`; if (pages.length > 1) page.append(turn(index + 1, pages.length)); });
  return pages;
}

function turn(number, count) {
  const link = (label, target) => { const made = node("a", "", label); made.href = `#page-${target}`; return made; };
  const nav = node("nav", "turn");
  nav.setAttribute("aria-label", `Pages, at page ${number}`);
  if (number > 1) nav.append(link("← Previous", number - 1));
  nav.append(node("span", "", `Page ${number} of ${count}`));
  if (number < count) nav.append(link("Next →", number + 1));
  return nav;
}

addEventListener("click", (event) => {
  const bar = event.target.closest?.(".days g");
  if (bar) { const box = document.getElementById("search"); box.value = bar.dataset.day; filter(box.value); }
});
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("search");
  box.addEventListener("input", () => filter(box.value));
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") { box.value = ""; filter(""); box.blur(); } });
});
