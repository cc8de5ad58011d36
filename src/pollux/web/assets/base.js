"use strict";
// On every page: theme, keys, tips, copy buttons, times in one zone. A page is complete without it.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const storage = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* private window */ } },
  };
  const theme = storage.get("pollux-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const places = { o: "", s: "sessions", u: "usage", p: "projects", f: "files", h: "health" };
  let isGoing = false;

  const actions = {
    theme() {
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
      storage.set("pollux-theme", root.dataset.theme);
    },
    help() { document.getElementById("keys").showModal(); },
    close() { document.getElementById("keys").close(); },
    find() {
      const field = document.querySelector("[data-find]") ?? document.getElementById("q");
      field.focus();
      field.select();
    },
    open() { for (const fold of document.querySelectorAll("main details")) fold.open = true; },
    fold() { for (const fold of document.querySelectorAll("main details")) fold.open = false; },
    next() { step(1); },
    previous() { step(-1); },
    before() { document.querySelector("a[rel=prev]")?.click(); },
    after() { document.querySelector("a[rel=next]")?.click(); },
    link() {
      const row = document.activeElement?.closest("[data-stop], .msg");
      const anchor = row?.closest("a") ?? row?.querySelector(".at") ?? row?.querySelector("a");
      copy(anchor ? anchor.href : location.href, "Link copied");
    },
    resume() { document.querySelector("[data-key=resume]")?.click(); },
    export() { document.querySelector("[data-key=export]")?.click(); },
    copy(button) {
      copy(button.dataset.text, "");
      const words = button.lastChild, before = words.textContent;
      words.textContent = "Copied";
      setTimeout(() => { words.textContent = before; }, 1200);
    },
  };
  const keys = {
    t: "theme", "?": "help", "/": "find", j: "next", k: "previous", e: "open", c: "fold",
    "[": "before", "]": "after", y: "link", r: "resume", x: "export",
  };

  function step(by) {
    const stops = [...document.querySelectorAll("[data-stop]")].filter((stop) => stop.checkVisibility());
    const here = stops.indexOf(document.activeElement);
    const top = (stop) => stop.getBoundingClientRect().top;
    let at = here + by;
    if (here < 0) at = by > 0 ? stops.findIndex((stop) => top(stop) > 100) : stops.findLastIndex((stop) => top(stop) < 100);
    const stop = stops[Math.max(0, Math.min(stops.length - 1, at))];
    stop?.focus({ preventScroll: true });
    stop?.scrollIntoView({ block: stop.dataset.stop || "start" });
  }

  function copy(words, message) {
    navigator.clipboard?.writeText(words);
    if (message) say(message);
  }

  function say(message) {
    let region = document.getElementById("said");
    if (!region) {
      region = document.createElement("p");
      region.id = "said";
      region.className = "unseen";
      region.setAttribute("role", "status");
      document.body.append(region);
    }
    region.textContent = message;
  }

  addEventListener("say", (event) => say(event.detail));
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select, dialog")) return;
    if (isGoing) {
      isGoing = false;
      if (event.key in places) { event.preventDefault(); location.href = root.dataset.root + places[event.key]; }
      return;
    }
    if (event.key === "g") { isGoing = true; setTimeout(() => { isGoing = false; }, 1500); return; }
    const action = Object.hasOwn(keys, event.key) && keys[event.key];
    if (action) { event.preventDefault(); actions[action](); }
  });
  addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-do], .copy");
    if (!button) return;
    if (button.className === "copy") button.dataset.text = button.parentElement.querySelector("pre").textContent;
    const action = button.dataset.do ?? "copy";
    if (Object.hasOwn(actions, action)) actions[action](button);
  });
  addEventListener("change", (event) => {
    if (event.target.closest?.("form[data-send]")) event.target.form.requestSubmit();
  });

  // Times that the server wrote in UTC (`datetime` ends in Z) are shown in the zone of the other pages, also in parts that come later.
  const fields = { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  let format;
  try { format = new Intl.DateTimeFormat("en", { ...fields, timeZone: root.dataset.zone }); } catch { format = new Intl.DateTimeFormat("en", fields); }
  const split = (at) => Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const day = ({ weekday, day, month, year }) => `${weekday} ${day} ${month} ${year}`;
  const clock = ({ hour, minute }) => `${hour}:${minute}`;
  const forms = {
    clock, day,
    second: (at) => `${clock(at)}:${at.second}`,
    full: (at) => `${day(at)}, ${clock(at)}`,
    until: (at, before) => (before && day(before) === day(at) ? clock(at) : forms.full(at)),
  };
  function localize(part) {
    let before;
    for (const time of part.querySelectorAll('time[datetime$="Z"]')) {
      const moment = new Date(time.dateTime), form = forms[time.dataset.form ?? "clock"];
      if (!form || isNaN(moment)) continue;
      const at = split(moment);
      time.textContent = form(at, before);
      before = at;
    }
  }

  addEventListener("DOMContentLoaded", () => {
    localize(document);
    const place = document.querySelector(".top [aria-current]");
    if (place) place.parentElement.scrollLeft = place.offsetLeft - 60; // a phone is too narrow for all words
    new MutationObserver((changes) => {
      for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === 1) localize(node);
    }).observe(document.body, { childList: true, subtree: true });
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    document.body.append(tip);
    const show = (event) => {
      const owner = event.type !== "focusout" && event.target.closest?.("[data-tip], .sky a, .bars a, .guide a");
      tip.hidden = !owner;
      if (!owner) return;
      tip.textContent = owner.dataset.tip || (owner.getAttribute("aria-label") ?? "").replaceAll("; ", "\n");
      const shapes = [...owner.querySelectorAll("rect:not(.reach), circle, .day, .fresh, .lost, .typed")];
      const boxes = (shapes.length ? shapes : [owner]).map((shape) => shape.getBoundingClientRect());
      const middle = boxes[0].left + boxes[0].width / 2 - tip.offsetWidth / 2;
      const left = Math.max(8, Math.min(middle, innerWidth - tip.offsetWidth - 8));
      const top = Math.min(...boxes.map((box) => box.top));
      tip.style.left = `${left + scrollX}px`;
      tip.style.top = `${Math.max(4, top + scrollY - tip.offsetHeight - 8)}px`;
    };
    for (const name of ["pointerover", "focusin", "focusout"]) addEventListener(name, show);
    const seconds = Number(document.querySelector("[data-reload]")?.dataset.reload);
    if (seconds) setTimeout(() => location.reload(), seconds * 1000);
  });
})();
