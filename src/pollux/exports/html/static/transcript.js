// One session: prompts, folds, copying, search, and days in the reader's zone.
Object.assign(keys, { j: "below", k: "above", n: "next", N: "previous", e: "expand", c: "collapse" });

const main = () => document.getElementById("main");
const folds = () => main().querySelectorAll("details");
let prompts;
const listed = () => (prompts ??= [...document.querySelectorAll(".thread > .prompt, .thread > .branch[open] > div > .prompt")]);
addEventListener("toggle", (event) => { if (event.target.matches?.(".branch")) prompts = undefined; }, true);

// The prompt at the top of the window: the last one that begins above the upper edge of the text, or -1.
const EDGE = 130;
function current() {
  const all = listed();
  let low = 0, high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].getBoundingClientRect().top < EDGE) low = middle + 1; else high = middle;
  }
  return low - 1;
}

let marked, waiting = false;
function follow() {
  waiting = false;
  const id = listed()[Math.max(0, current())]?.id;
  const link = id && document.querySelector(`#prompts a[href="#${id}"]`);
  if (link === marked) return;
  marked?.removeAttribute("aria-current");
  marked = link || undefined;
  if (!marked) return;
  marked.setAttribute("aria-current", "true");
  const list = document.getElementById("prompts"), box = marked.getBoundingClientRect();
  if (box.top < 0 || box.bottom > innerHeight) list.scrollTop += box.top - innerHeight / 2;
}
addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(follow); } }, { passive: true });
addEventListener("DOMContentLoaded", follow);

function jump(step) {
  const all = listed(), focused = all.indexOf(document.activeElement);
  const top = (number) => all[number].getBoundingClientRect().top;
  let from = current();
  // Near the end of a page a prompt may never reach the top: then the one that has the focus counts.
  if (focused >= 0 && top(focused) > 0 && top(focused) < innerHeight) from = focused;
  else if (step < 0 && from >= 0 && top(from) < 0) from += 1;
  const prompt = all[Math.max(0, Math.min(from + step, all.length - 1))];
  if (!prompt) return;
  prompt.focus({ preventScroll: true });
  prompt.scrollIntoView({ block: "start" });
}

// Search covers all text of the session, also in folds; a match may span several elements of one block.
const BLOCKS = "p, li, pre, td, th, h1, h2, h3, h4, h5, h6, dt, dd, summary, .words, .notice, figcaption, div";
const MAX_HITS = 2000;
let hits = [], at = -1, opened = new Set();

function texts() {
  return document.createTreeWalker(main(), NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement.closest("button, svg, .edge, .view, .guide") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
}

function* blocks() {
  const walker = texts();
  let nodes = [], block = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = node.parentElement.closest(BLOCKS);
    if (inside !== block && nodes.length) { yield nodes; nodes = []; }
    block = inside;
    nodes.push(node);
  }
  if (nodes.length) yield nodes;
}

const folded = (text) => { const low = text.toLowerCase(); return low.length === text.length ? low : text; };

function find(query) {
  const found = [], needle = folded(query);
  for (const nodes of blocks()) {
    const text = folded(nodes.map((node) => node.data).join(""));
    for (let from = text.indexOf(needle); from >= 0; from = text.indexOf(needle, from + needle.length)) {
      found.push(range(nodes, from, from + needle.length));
      if (found.length >= MAX_HITS) return found;
    }
  }
  return found;
}

function range(nodes, from, to) {
  const made = document.createRange();
  let before = 0, begun = false;
  for (const node of nodes) {
    const end = before + node.length;
    if (!begun && from < end) { made.setStart(node, from - before); begun = true; }
    if (to <= end) { made.setEnd(node, to - before); break; }
    before = end;
  }
  return made;
}

function search(query) {
  for (const fold of opened) fold.open = false;
  opened = new Set();
  hits = query.trim() ? find(query) : [];
  at = -1;
  for (const hit of hits) {
    for (let fold = hit.startContainer.parentElement.closest("details:not([open])"); fold;
      fold = fold.parentElement.closest("details:not([open])")) { fold.open = true; opened.add(fold); }
  }
  CSS.highlights?.set("hit", new Highlight(...hits));
  CSS.highlights?.delete("now");
  if (hits.length) step(1); else showCount(query);
}

function step(by) {
  if (!hits.length) return;
  at = (at + by + hits.length) % hits.length;
  const hit = hits[at];
  CSS.highlights?.set("now", new Highlight(hit));
  hit.startContainer.parentElement.scrollIntoView({ block: "center" });
  const box = hit.getBoundingClientRect();
  if (box.top < 80 || box.bottom > innerHeight - 40) scrollBy(0, box.top - innerHeight / 2);
  showCount();
}

function showCount(query = "") {
  const more = hits.length >= MAX_HITS ? "+" : "";
  document.getElementById("hits").textContent =
    hits.length ? `${at + 1} of ${hits.length.toLocaleString("en")}${more}` : query.trim() ? "no matches" : "";
}

function copy(text, done) {
  const fallback = () => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, fallback); else fallback();
}

Object.assign(actions, {
  below: () => jump(1),
  above: () => jump(-1),
  next: () => step(1),
  previous: () => step(-1),
  expand: () => { for (const fold of folds()) fold.open = true; },
  collapse: () => { for (const fold of folds()) fold.open = false; },
});

addEventListener("click", (event) => {
  const button = event.target.closest?.(".copy");
  if (button) {
    const code = [...button.parentElement.querySelectorAll("pre")].map((pre) => pre.textContent).join("\n");
    copy(code, () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1200); });
  }
  const link = event.target.closest?.(".at");
  if (link) copy(link.href, () => { link.classList.add("copied"); setTimeout(() => link.classList.remove("copied"), 1200); });
});

// A new day begins elsewhere in another zone, so the dividers are set again.
function divideDays() {
  for (const divider of document.querySelectorAll(".day")) divider.remove();
  const days = new Map();
  for (const article of main().querySelectorAll("article")) {
    const time = article.querySelector(":scope > .edge > .at > time");
    if (!time) continue;
    const thread = article.closest(".nested, .branch, #main"), at = new Date(time.dateTime), day = isoDay(at);
    if (days.has(thread) && days.get(thread) !== day) {
      const divider = document.createElement("p");
      divider.className = "day";
      divider.textContent = dayWords(at);
      article.before(divider);
    }
    days.set(thread, day);
  }
}

// A link into a fold opens it.
function reveal() {
  const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = place && place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (place && place.closest("details")) place.scrollIntoView();
}
addEventListener("hashchange", reveal);

addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("search");
  let soon;
  box.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(() => search(box.value), 150); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { box.value = ""; search(""); box.blur(); }
  });
  if (!isUtc) divideDays();
  reveal();
});
