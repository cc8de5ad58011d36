// The session page: windows of a long session, find, keys, and the message that the address names.
const thread = document.querySelector(".thread");
const partAddress = new URL(thread.dataset.part, location.href);
const MARGIN = 1500, KEPT = 3, HEIGHT = 110, MANY_ELEMENTS = 5000;
const folds = new Map();
const loading = new Map();
const parse = (html, selector) => document.adoptNode(new DOMParser().parseFromString(html, "text/html").querySelector(selector));
const numberOf = (message) => Number(/^m(\d+)$/.exec(message?.id ?? "")?.[1]);
// The address of a part or of the stream, with the view of this page.
function viewed(name) {
  const address = new URL(partAddress.href.replace(/part$/, name)), view = new URLSearchParams(location.search);
  for (const key of ["detail", "thoughts", "branches"]) if (view.has(key)) address.searchParams.set(key, view.get(key));
  return address;
}

// Windows. A placeholder is emptied again when it is far away, and keeps its height and its changed folds.
const parts = () => [...thread.querySelectorAll(".part")];
for (const part of thread.querySelectorAll(".part.wait")) part.style.minHeight = `${(part.dataset.to - part.dataset.from + 1) * HEIGHT}px`;

function anchored(change) {
  const first = [...thread.querySelectorAll(".msg")].find((message) => message.getBoundingClientRect().bottom > 0);
  const before = first?.getBoundingClientRect().top;
  change();
  if (first?.isConnected) scrollBy(0, first.getBoundingClientRect().top - before);
}

// A fold belongs to its message; a branch, which contains messages, to its first one.
const foldKey = (fold) => {
  const message = fold.closest(".msg");
  return message ? `${message.id}/${[...message.querySelectorAll("details")].indexOf(fold)}` : `branch/${fold.querySelector(".msg")?.id}`;
};
thread.addEventListener("toggle", (event) => {
  if (event.target.matches("details")) folds.set(foldKey(event.target), event.target.open);
}, true);
function restoreFolds(fresh) {
  for (const fold of fresh.querySelectorAll("details")) fold.open = folds.get(foldKey(fold)) ?? fold.open;
}

function load(part) {
  if (!part.classList.contains("wait")) return Promise.resolve(part);
  if (!loading.has(part)) loading.set(part, fetchPart(part).finally(() => loading.delete(part)));
  return loading.get(part);
}

async function fetchPart(part) {
  const address = viewed("part");
  address.searchParams.set("from", part.dataset.from);
  address.searchParams.set("to", part.dataset.to);
  const answer = await fetch(address);
  if (!answer.ok) { part.textContent = "The session has changed: load the page again."; return part; }
  const fresh = parse(await answer.text(), ".part");
  restoreFolds(fresh);
  anchored(() => part.replaceWith(fresh));
  watcher.observe(fresh);
  markNew();
  requestAnimationFrame(tidy); // when the message that it was loaded for has been scrolled to
  if (find.words) highlight();
  return fresh;
}

function unload(part) {
  if (part.classList.contains("wait") || part.contains(document.activeElement)) return;
  const empty = part.cloneNode(false), height = part.offsetHeight;
  empty.className = "part wait";
  empty.style.minHeight = `${height}px`;
  anchored(() => part.replaceWith(empty));
  watcher.observe(empty);
}

// Empties windows that are far away: sooner if the page has many elements, but never one that would be loaded again.
function tidy() {
  const all = parts(), boxes = all.map((part) => part.getBoundingClientRect());
  const near = boxes.findIndex((box) => box.bottom > 0);
  if (near < 0) return;
  const isFar = (box) => box.bottom < -MARGIN || box.top > innerHeight + MARGIN;
  const loaded = all.map((part, index) => ({ part, away: Math.abs(index - near), isFar: isFar(boxes[index]) }))
    .filter(({ part, isFar }) => isFar && !part.classList.contains("wait")).sort((one, other) => other.away - one.away);
  for (const { part, away } of loaded)
    if (away > KEPT || document.getElementsByTagName("*").length > MANY_ELEMENTS) unload(part);
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting && entry.target.isConnected) load(entry.target);
  tidy();
}, { rootMargin: `${MARGIN}px 0px` });
for (const part of parts()) watcher.observe(part);

// The message with a number: in its window, or the nearest before it that has an article.
const partOf = (number) => parts().find((part) => number <= Number(part.dataset.to));
async function show(number) {
  let part = partOf(number);
  if (!part) return null;
  part = await load(part);
  const messages = [...part.querySelectorAll(":scope > .msg, .branch .msg")].filter(numberOf);
  const message = messages.findLast((candidate) => numberOf(candidate) <= number) ?? messages[0];
  if (!message) return null;
  for (let fold = message.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  message.scrollIntoView({ block: "start" });
  return message;
}
const named = /^#m(\d+)$/.exec(location.hash);
if (named && !document.getElementById(location.hash.slice(1))) show(Number(named[1]));
else if (!named && thread.dataset.target) show(Number(thread.dataset.target.slice(1)));

// What is new since the reader last looked at this session: a line above it, and a link to that line.
const SEEN = `pollux-seen ${partAddress.pathname}`;
let total = Number(thread.dataset.total), seen = 0;
try { seen = Number(localStorage.getItem(SEEN)); } catch { /* private window */ }
function markNew() {
  const n_new = total - seen, part = seen > 0 && n_new > 0 && partOf(seen + 1);
  if (!part) return;
  let link = document.getElementById("to-new");
  if (!link) {
    link = Object.assign(document.createElement("a"), { id: "to-new", className: "button" });
    link.addEventListener("click", (event) => { event.preventDefault(); show(seen + 1).then(() => document.querySelector(".new")?.scrollIntoView()); });
    document.querySelector(".acts")?.append(link);
  }
  link.href = `#m${seen + 1}`;
  link.textContent = `${n_new.toLocaleString("en")} new since your last visit`;
  if (part.classList.contains("wait") || thread.querySelector(".new")) return;
  const first = [...part.querySelectorAll(".msg")].find((message) => firstNumber(message) > seen);
  const line = Object.assign(document.createElement("p"), { className: "new", textContent: "New since your last visit" });
  if (first) (first.closest(".branch") ?? first).before(line); else part.append(line);
}
addEventListener("visibilitychange", () => {
  if (!document.hidden) return;
  seen = total;
  try { localStorage.setItem(SEEN, seen); } catch { /* private window */ }
});

// Find: the server names the messages, the page marks the words in those that are loaded.
const field = document.querySelector("[data-find]"), count = document.getElementById("hits");
const find = { words: "", at: [], here: -1, more: false };
async function search(words) {
  find.words = words.trim();
  find.at = [];
  find.here = -1;
  if (find.words) {
    const address = new URL(field.form.action);
    address.searchParams.set("q", find.words);
    const answer = await fetch(address, { headers: { accept: "application/json" } });
    if (field.value.trim() !== find.words) return;
    if (answer.ok) ({ at: find.at, more: find.more } = await answer.json());
  }
  markHits();
  highlight();
  await hit(1);
}
// A mark in the guide above the call, prompt or error that each hit belongs to.
function markHits() {
  const drawing = document.querySelector(".guide > svg");
  drawing?.querySelector(".found")?.remove();
  if (!drawing || !find.at.length) return;
  const marks = [...drawing.querySelectorAll("a")].map((link) => {
    const box = link.getBBox();
    return { number: Number(link.href.baseVal.split("#m")[1]), x: box.x + box.width / 2 };
  });
  const places = new Set(find.at.map((number) => (marks.findLast((mark) => mark.number <= number) ?? marks[0])?.x));
  const path = document.createElementNS(drawing.namespaceURI, "path");
  path.setAttribute("class", "found");
  path.setAttribute("d", [...places].map((x) => `M${x}-4v9`).join(""));
  drawing.append(path);
}
async function hit(by) {
  if (find.at.length) {
    find.here = (find.here + by + find.at.length) % find.at.length;
    const message = await show(find.at[find.here]);
    if (message) for (const fold of message.querySelectorAll("details")) {
      if (fold.textContent.toLowerCase().includes(find.words.toLowerCase())) fold.open = true;
    }
    highlight(message);
  }
  const total = `${find.at.length.toLocaleString("en")}${find.more ? "+" : ""}`;
  count.textContent = !find.words ? "" : find.at.length ? `${find.here + 1} of ${total}` : "not found";
}
function highlight(current) {
  if (!CSS.highlights) return;
  const all = new Highlight(), now = new Highlight(), needle = find.words.toLowerCase();
  if (needle) {
    const walker = document.createTreeWalker(thread, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let from = text.indexOf(needle); from >= 0; from = text.indexOf(needle, from + needle.length)) {
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, from + needle.length);
        (current?.contains(node) ? now : all).add(range);
      }
    }
  }
  CSS.highlights.set("hit", all);
  CSS.highlights.set("now", now);
}
let soon;
field.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(() => search(field.value), 150); });
field.form.addEventListener("submit", (event) => { event.preventDefault(); hit(1); });
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); hit(-1); }
  if (event.key === "Escape") { field.value = ""; search(""); field.blur(); }
});
for (const button of document.querySelectorAll("[data-hit]"))
  button.addEventListener("click", () => hit(button.dataset.hit === "next" ? 1 : -1));
if (field.value) search(field.value);

// Keys of this page; those of all pages are in base.js.
const press = (selector) => document.querySelector(selector)?.click();
function message(by) {
  const all = [...thread.querySelectorAll(".msg")].filter((candidate) => candidate.checkVisibility());
  const here = all.findLastIndex((candidate) => candidate.getBoundingClientRect().top < 130);
  const next = all[Math.max(0, Math.min(all.length - 1, here + by))];
  if (!next) return;
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
}
// Opens or closes the folds of the message that has the focus, or, of a prompt without any, those of its turn.
function toggleFolds(message) {
  let folds = [...message.querySelectorAll("details")];
  for (let next = message.nextElementSibling; !folds.length && next?.matches(".msg:not(.prompt)"); next = next.nextElementSibling)
    folds = [...next.querySelectorAll("details")];
  const open = folds.some((fold) => !fold.open);
  for (const fold of folds) fold.open = open;
}
const actions = {
  J: () => message(1), K: () => message(-1), n: () => hit(1), N: () => hit(-1),
  h: () => press("[data-key=h]"), b: () => press("[data-key=b]"),
  d: () => { const all = [...document.querySelectorAll(".pick a")]; all[(all.findIndex((link) => link.ariaCurrent) + 1) % all.length]?.click(); },
  u: () => {
    const here = document.activeElement?.closest(".msg") ?? [...thread.querySelectorAll(".msg")].find((candidate) => candidate.getBoundingClientRect().bottom > 130);
    const number = numberOf(here);
    if (number) location.href = recordAddress(number);
  },
  ".": () => { load(parts().at(-1)).then(() => scrollTo(0, document.body.scrollHeight)); },
};
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return; // base.js took it: `g u`
  if (event.target.closest?.("input, textarea, select, dialog")) return;
  if (event.key === "Enter" && event.target.matches(".msg")) toggleFolds(event.target);
  if (Object.hasOwn(actions, event.key)) { event.preventDefault(); actions[event.key](); }
});

// A link to the record of a message, beside its time, once the pointer or the focus is there; `u` follows it.
const recordAddress = (number) => `${partAddress.pathname.replace(/part$/, "raw")}/${number}`;
for (const name of ["pointerover", "focusin"]) thread.addEventListener(name, (event) => {
  const message = event.target.closest?.(".msg"), number = numberOf(message);
  const edge = number && message.querySelector(":scope > .edge");
  if (!edge || edge.querySelector(".raw")) return;
  const link = Object.assign(document.createElement("a"), { className: "raw", textContent: "raw", href: recordAddress(number) });
  link.ariaLabel = `raw record of message ${number}`;
  edge.querySelector(".at").after(link);
});

// The prompt beside the text that is at the top of the window.
let marked, isWaiting = false;
function follow() {
  isWaiting = false;
  const prompts = [...thread.querySelectorAll(".prompt")].filter((candidate) => candidate.checkVisibility());
  const prompt = prompts.findLast((candidate) => candidate.getBoundingClientRect().top < 140) ?? prompts[0];
  const link = prompt && document.querySelector(`#prompts a[href$="#${CSS.escape(prompt.id)}"]`);
  if (link === marked) return;
  marked?.removeAttribute("aria-current");
  marked = link ?? undefined;
  marked?.setAttribute("aria-current", "true");
}
addEventListener("scroll", () => { if (!isWaiting) { isWaiting = true; requestAnimationFrame(follow); } }, { passive: true });
follow();

// Live: one stream while the tab is visible. What has grown replaces the end of the thread, from a turn on.
let stream, version = thread.dataset.version;
const firstNumber = (node) => numberOf(node.matches(".msg") ? node : node.querySelector(".msg"));
const isAtEnd = () => innerHeight + scrollY > document.body.scrollHeight - 200;

function grow(news) {
  const last = parts().at(-1), follows = isAtEnd(), n_new = news.total - total;
  total = news.total;
  version = news.version;
  last.dataset.to = news.total;
  if (!last.classList.contains("wait")) {
    const fresh = parse(`<section>${news.html}</section>`, "section");
    restoreFolds(fresh);
    const old = [...last.children];
    const from = old.findIndex((child) => firstNumber(child) >= news.from);
    const focused = document.activeElement?.closest(".msg")?.id;
    anchored(() => {
      for (const child of from < 0 ? [] : old.slice(from)) child.remove();
      last.append(...fresh.childNodes);
    });
    if (focused && !document.activeElement?.closest(".msg")) document.getElementById(focused)?.focus({ preventScroll: true });
  }
  const list = document.querySelector("#prompts ol"), items = parse(`<ol>${news.prompts}</ol>`, "ol");
  for (const item of [...list.children]) if (Number(item.querySelector("a").hash.slice(2)) >= news.from) item.remove();
  list.append(...items.children);
  for (const name of ["facts", "acts"]) document.querySelector(`.${name}`).replaceWith(parse(news[name], `.${name}`));
  markNew();
  if (n_new > 0) say(`${n_new} new message${n_new === 1 ? "" : "s"}`);
  if (follows) scrollTo(0, document.body.scrollHeight);
}
function say(words) {
  let region = document.getElementById("news");
  if (!region) {
    region = Object.assign(document.createElement("p"), { id: "news", className: "unseen" });
    region.setAttribute("role", "status");
    document.body.append(region);
  }
  region.textContent = words;
}
function listen() {
  if (document.hidden) { stream?.close(); stream = undefined; return; }
  if (stream) return;
  const address = viewed("events");
  address.searchParams.set("total", total);
  address.searchParams.set("version", version);
  stream = new EventSource(address);
  stream.addEventListener("grown", (event) => grow(JSON.parse(event.data)));
  stream.addEventListener("again", () => { stream.close(); location.reload(); });
  stream.addEventListener("bye", () => stream.close());
  // A connection that breaks is opened again with what the page has now.
  stream.addEventListener("error", () => { stream?.close(); stream = undefined; setTimeout(listen, 3000); });
}
if ("total" in thread.dataset) { document.addEventListener("visibilitychange", listen); listen(); }
markNew();
