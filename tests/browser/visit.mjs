// Opens a page in Chromium, takes the steps that stdin lists, and writes to stdout what happened.
//
// {"page": URL, "width", "height", "scheme", "zone", "script": true,
//  "steps": [{"press": key} | {"type": [selector, text]} | {"click": selector} | {"tell": expression} | {"wait": ms} |
//            {"shot": path} | {"pdf": path} | {"print": true} | {"audit": true}]}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.POLLUX_BROWSER, "package.json"));
const { chromium } = require("playwright-core");
const wanted = JSON.parse(readFileSync(0, "utf8"));

const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath: process.env.POLLUX_CHROMIUM, args });
const context = await browser.newContext({
  viewport: { width: wanted.width ?? 1280, height: wanted.height ?? 900 },
  colorScheme: wanted.scheme ?? "light",
  javaScriptEnabled: wanted.script ?? true,
  timezoneId: wanted.zone ?? "UTC",
  permissions: ["clipboard-read", "clipboard-write"],
});
const page = await context.newPage();
const seen = { said: [], errors: [], requests: [], dialogs: [], told: [], audit: [] };
page.on("console", (one) => seen.said.push(one.text()));
page.on("pageerror", (one) => seen.errors.push(one.message));
page.on("request", (one) => seen.requests.push(one.url().slice(0, 200)));
page.on("dialog", (one) => { seen.dialogs.push(one.message()); one.dismiss(); });

const began = performance.now();
await page.goto(wanted.page);
seen.opened_ms = performance.now() - began;
// CPU time of the page alone, so that other processes on the machine do not count.
const session = await browser.newBrowserCDPSession();
const { processInfo } = await session.send("SystemInfo.getProcessInfo");
seen.cpu_ms = 1000 * Math.max(...processInfo.filter((one) => one.type === "renderer").map((one) => one.cpuTime));
for (const step of wanted.steps ?? []) {
  if (step.press) await page.keyboard.press(step.press);
  if (step.type) await page.fill(...step.type);
  if (step.click) await page.click(step.click);
  if (step.wait) await page.waitForTimeout(step.wait);
  if (step.print) await page.emulateMedia({ media: "print" });
  if (step.shot) await page.screenshot({ path: step.shot });
  if (step.pdf) await page.pdf({ path: step.pdf, format: "A4" });
  if (step.tell) seen.told.push(await page.evaluate(step.tell));
  if (step.audit) {
    // axe skips what is not laid out.
    await page.evaluate(() => { for (const one of document.querySelectorAll("article, .shelf")) one.style.contentVisibility = "visible"; });
    await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8") + ";0");
    const found = await page.evaluate(() => axe.run());
    seen.audit.push(...found.violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`));
  }
}
seen.address = page.url();
await browser.close();
console.log(JSON.stringify(seen));
