// Keeps one Chromium open. Reads a command from each line of stdin, and writes its result as a line to stdout.
//
// {"do": "open", "width", "height", "scheme", "script", "cookies": [...]} returns the number of a tab in a context of its own,
// with "beside" in the context of another tab, whose connections it shares;
// {"do": name of a function below, "tab": number, ...} runs in that tab. A line of output is {"result"} or {"error"}.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.env.POLLUX_BROWSER, "package.json"));
const { chromium } = require("playwright-core");
const axe = `${readFileSync(require.resolve("axe-core/axe.min.js"), "utf8")};0`;
const PATIENCE = 40_000;

const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath: process.env.POLLUX_CHROMIUM, args });
const tabs = new Map();
let n_tabs = 0;

async function open({ width = 1280, height = 900, scheme = "light", script = true, cookies = [], beside = 0 }) {
  const context = tabs.get(beside)?.context ?? await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    javaScriptEnabled: script,
    timezoneId: "UTC",
    acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(PATIENCE);
  if (cookies.length) await context.addCookies(cookies);
  const page = await context.newPage();
  const seen = { said: [], errors: [], requests: [], answers: [], dialogs: [], popups: 0, downloads: 0 };
  page.on("console", (message) => seen.said.push(`${message.text()} (${message.location().url})`));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("request", (request) => seen.requests.push(request.url().slice(0, 300)));
  page.on("response", (answer) => seen.answers.push([answer.status(), answer.url().slice(0, 300)]));
  page.on("dialog", (dialog) => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });
  page.on("download", () => { seen.downloads += 1; });
  page.on("popup", () => { seen.popups += 1; });
  n_tabs += 1;
  tabs.set(n_tabs, { context, page, seen, whole: beside ? page : context });
  return n_tabs;
}

const commands = {
  async close({ whole }, { tab }) { tabs.delete(tab); await whole.close(); },
  async goto({ page }, { address }) { return (await page.goto(address))?.status() ?? 0; },
  async press({ page }, { keys }) { for (const key of keys) await page.keyboard.press(key); },
  async fill({ page }, { selector, words }) { await page.fill(selector, words); },
  async choose({ page }, { selector, value }) { await page.selectOption(selector, value); },
  async click({ page }, { selector }) { await page.click(selector); },
  // Clicks a link or a button, and waits until the page that it leads to is loaded.
  async follow({ page }, { selector }) {
    await Promise.all([page.waitForEvent("framenavigated", { predicate: (frame) => frame === page.mainFrame() }), page.click(selector)]);
    await page.waitForLoadState("load");
    return page.url();
  },
  async tell({ page }, { expression }) { return page.evaluate(expression); },
  async wheel({ page }, { by }) { await page.mouse.move(500, 500); await page.mouse.wheel(0, by); },
  // Waits until an expression is true. `page.waitForFunction` needs `eval`, which the policy of our pages forbids.
  async wait({ page }, { expression }) {
    const end = performance.now() + PATIENCE;
    for (;;) {
      let value;
      try { value = await page.evaluate(expression); } catch (error) { if (!/navigat|destroyed/.test(error.message)) throw error; }
      if (value) return value;
      if (performance.now() > end) throw new Error(`Never true: ${expression} at ${page.url()}`);
      await page.waitForTimeout(40);
    }
  },
  async pause({ page }, { milliseconds }) { await page.waitForTimeout(milliseconds); },
  async shot({ page }, { path, whole = false }) { await page.screenshot({ path, fullPage: whole }); },
  async media({ page }, options) { await page.emulateMedia({ media: options.media ?? null, colorScheme: options.scheme ?? null }); },
  async download({ page }, { selector, path }) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
    await download.saveAs(path);
    return download.suggestedFilename();
  },
  async frames({ page }) { return page.frames().map((frame) => frame.url()); },
  async frameText({ page }, { number }) {
    const frame = page.frames()[number];
    return frame ? frame.evaluate("document.body ? document.body.innerText : ''") : "";
  },
  async audit({ page }) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    return violations.map((rule) => ({
      rule: rule.id, impact: rule.impact, nodes: rule.nodes.length,
      first: `${rule.nodes[0].html.slice(0, 300)} ${rule.nodes[0].failureSummary}`,
    }));
  },
  async cookies({ context }) { return context.cookies(); },
  async address({ page }) { return page.url(); },
  async seen({ seen }) { return seen; },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    const result = command.do === "open" ? await open(command) : await commands[command.do](tabs.get(command.tab), command);
    answer = { result: result ?? null };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
