// The list of sessions: filtered by words, put together by project or by day.
Object.assign(keys, { g: "group" });

let rows, byProject;
function sheet() {
  if (rows) return;
  byProject = [...document.querySelectorAll(".shelf")];
  rows = byProject.flatMap((shelf) =>
    [...shelf.querySelector("tbody").rows].map((row) =>
      ({ row, shelf, words: `${row.textContent} ${row.dataset.day}`.toLowerCase() })));
}

function filter(query) {
  sheet();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const one of rows) {
    one.row.hidden = !words.every((word) => one.words.includes(word));
    shown += !one.row.hidden;
  }
  for (const shelf of document.querySelectorAll(".shelf"))
    shelf.hidden = !shelf.querySelector("tbody tr:not([hidden])");
  document.getElementById("none").hidden = shown > 0;
  document.getElementById("hits").textContent = words.length ? `${shown} of ${rows.length}` : "";
}

deeds.group = () => {
  sheet();
  const place = document.getElementById("shelves");
  const isByDay = place.classList.toggle("by-day");
  document.querySelector("[data-do=group]").textContent = isByDay ? "By project" : "By day";
  if (!isByDay) {
    for (const one of rows) one.shelf.querySelector("tbody").append(one.row);
    place.replaceChildren(...byProject);
  } else {
    const days = new Map();
    for (const one of [...rows].sort((a, b) => (a.row.cells[0].textContent < b.row.cells[0].textContent ? 1 : -1))) {
      const day = one.row.dataset.day;
      if (!days.has(day)) days.set(day, empty(day));
      days.get(day).querySelector("tbody").append(one.row);
    }
    for (const shelf of days.values()) {
      const n = shelf.querySelector("tbody").rows.length;
      shelf.querySelector(".about").textContent = `${n} ${n === 1 ? "session" : "sessions"}`;
    }
    place.replaceChildren(...days.values());
  }
  filter(document.getElementById("search").value);
};

function empty(day) {
  const shelf = document.createElement("section"), title = document.createElement("h2"), about = document.createElement("p");
  const table = byProject[0].querySelector("table").cloneNode(false);
  shelf.className = "shelf";
  title.textContent = day;
  about.className = "about";
  table.append(byProject[0].querySelector("thead").cloneNode(true), document.createElement("tbody"));
  shelf.append(title, about, table);
  return shelf;
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
