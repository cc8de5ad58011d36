// Works on any page of ours: the theme, the keys, the list of keys. Nothing here touches a node per message at load.
const root = document.documentElement;
root.classList.add("js");

const memory = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* then only until the page is closed */ } },
};
const remembered = memory.get("pollux-theme");
if (remembered === "light" || remembered === "dark") root.dataset.theme = remembered;

const deeds = {
  theme() {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    memory.set("pollux-theme", root.dataset.theme);
  },
  help() { document.getElementById("keys")?.showModal(); },
  close() { document.getElementById("keys")?.close(); },
  search() { const box = document.getElementById("search"); box.focus(); box.select(); },
};
const keys = { t: "theme", "?": "help", "/": "search" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, dialog")) return;
  const deed = keys[event.key];
  if (deed && deeds[deed]) { event.preventDefault(); deeds[deed](); }
});
addEventListener("click", (event) => {
  const deed = event.target.closest?.("[data-do]")?.dataset.do;
  if (deed && deeds[deed]) deeds[deed]();
});
addEventListener("DOMContentLoaded", () => {
  document.querySelector(".tools").hidden = false;
});
