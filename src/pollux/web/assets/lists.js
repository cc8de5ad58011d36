// On pages with lists: results while the reader types, and lists that follow the archive.
const main = document.getElementById("main");
const root = document.documentElement.dataset.root;
const field = document.getElementById("q");
let loading;

async function load(address) {
  loading?.abort();
  const request = loading = new AbortController();
  try {
    const answer = await fetch(address, { signal: request.signal });
    const text = await answer.text();
    return request === loading ? new DOMParser().parseFromString(text, "text/html") : null;
  } catch {
    return null; // a newer request, or the server has stopped
  }
}

// Folds and focus are found again by what they say or lead to.
const nameOf = (part) => part.id || part.getAttribute("href") || part.getAttribute("name") || part.querySelector("summary, h2")?.textContent;

function show(page) {
  const fresh = page?.getElementById("main");
  if (!fresh) return;
  const folds = [...main.querySelectorAll("details")].map((fold) => [nameOf(fold), fold.open]);
  const focused = main.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const rolled = [...main.querySelectorAll(".scroll, .roll")].map((box) => [box.scrollLeft, box.scrollTop]);
  const top = scrollY;
  main.replaceChildren(...fresh.childNodes);
  if (fresh.dataset.mark) main.dataset.mark = fresh.dataset.mark;
  document.title = page.title;
  const foot = page.querySelector(".foot");
  if (foot) document.querySelector(".foot")?.replaceWith(foot);
  for (const fold of main.querySelectorAll("details")) {
    const at = folds.findIndex(([name]) => name === nameOf(fold));
    if (at >= 0) fold.open = folds.splice(at, 1)[0][1];
  }
  main.querySelectorAll(".scroll, .roll").forEach((box, at) => { [box.scrollLeft, box.scrollTop] = rolled[at] ?? [0, 0]; });
  if (focused) [...main.querySelectorAll("a, button, summary, [tabindex]")].find((part) => nameOf(part) === focused)?.focus({ preventScroll: true });
  scrollTo(scrollX, top);
}

// Search while typing; the address follows, and Back leads to what was there before.
if (location.pathname === `${root}search`) {
  let waiting, isTyping = false;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const address = new URL(location.href), query = address.searchParams;
      query.delete("after");
      query.set("q", field.value);
      if (field.value.trim()) query.set("typing", 1); else query.delete("typing");
      history[isTyping ? "replaceState" : "pushState"](null, "", address);
      isTyping = true;
      show(await load(address));
      const note = main.querySelector(".order span, .empty p")?.textContent;
      if (note) dispatchEvent(new CustomEvent("say", { detail: note }));
    }, 150);
  });
  field.addEventListener("blur", () => { isTyping = false; });
  addEventListener("popstate", async () => {
    isTyping = false;
    field.value = new URL(location.href).searchParams.get("q") ?? "";
    show(await load(location.href));
  });
}

// Follow the archive: one stream while the tab is visible. The mark says what the page shows already.
if (main.dataset.mark) {
  let stream, waiting, last = 0;
  const isBusy = () => document.activeElement?.closest?.("main input, main select, dialog[open]") || !getSelection().isCollapsed;
  const refresh = () => {
    clearTimeout(waiting);
    const pause = Math.max(100, last + 1000 - performance.now());
    waiting = setTimeout(async () => {
      if (document.hidden) return;
      if (isBusy()) { refresh(); return; }
      last = performance.now();
      show(await load(location.href));
    }, pause);
  };
  const listen = () => {
    if (document.hidden || stream) return;
    stream = new EventSource(`${root}events?mark=${main.dataset.mark}`);
    stream.addEventListener("sessions", refresh);
    stream.addEventListener("bye", () => stream.close());
    stream.addEventListener("error", () => { close(); setTimeout(listen, 3000); });
  };
  const close = () => { stream?.close(); stream = undefined; };
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else listen(); });
  addEventListener("pagehide", close);
  listen();
}
