// Five questions put to the suite report's page, step by step as a reader takes them, and its accessibility.
//
//   npm install --prefix DIR playwright-core axe-core
//   node tests/benchmarks/page_questions.mjs DIR SUITE.html [CHROMIUM]     default: /usr/bin/chromium
//
// Each question begins on the page as it opens, at 1440 x 900. It prints how many clicks, choices, words typed and
// scrolls the answer takes, whether the answer is then within the window, the time of the page for all of it, and how
// long a person would take by the keystroke-level model of S. K. Card, T. P. Moran, A. Newell (CACM 23(7), 1980):
// 1.35 s of thought and 1.3 s of pointing and pressing for each click, 0.28 s for a key, 1.5 s for a scroll, and 0.25 s
// for each word of the answer (modelled, no person measured). Then axe-core looks at every page and the drawer, light
// and dark, wide and narrow, and the keyboard alone opens a cell and closes it. Exit code 1 if anything of it fails.

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, page, chromiumPath = "/usr/bin/chromium"] = process.argv.slice(2);
const require = createRequire(`${resolve(folder)}/`);
const { chromium } = require("playwright-core");
const address = pathToFileURL(resolve(page)).href;
const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: chromiumPath, args: quiet });
let failed = false;

class Reader {
  constructor(tab) { this.tab = tab; this.done = []; this.seconds = 0; }
  async click(locator, name) { await locator.first().click(); this.step(`click ${name}`, 1.35 + 1.3); }
  async type(locator, words) { await locator.first().fill(words); await locator.first().press("Enter"); this.step(`type "${words}"`, 1.35 + 1.3 + 0.28 * words.length); }
  async choose(label, value) { await this.tab.locator("label", { has: this.tab.locator("span", { hasText: label }) }).first().locator("select").selectOption(value); this.step(`choose ${label}`, 1.35 + 2 * 1.3); }
  step(what, seconds) { this.done.push(what); this.seconds += seconds; }
  /** The text of an answer, scrolled to if it is not in the window. */
  async read(locator) {
    const found = locator.first();
    await found.waitFor({ state: "attached" });
    const inWindow = () => found.evaluate(of => { const box = of.getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight - 20 && box.left >= 0 && box.left < innerWidth; });
    for (let scrolls = 0; !(await inWindow()) && scrolls < 10; scrolls++) {
      const box = await found.boundingBox();
      await this.tab.mouse.move(700, 500);
      await this.tab.mouse.wheel(0, Math.sign(box.y) * 700);
      await this.tab.waitForTimeout(150);
      this.step("scroll", 1.5);
    }
    if (!(await inWindow())) throw new Error("the answer is not in the window");
    const text = (await found.innerText()).replace(/\s+/g, " ").trim();
    this.seconds += 0.25 * text.split(" ").length;
    return text;
  }
}

const tab = name => reader => reader.click(reader.tab.getByRole("navigation").getByRole("link", { name }), name);
const QUESTIONS = {
  "What is best for GDN on the H200, and by how much over cuDNN or torch?": async reader => {
    await reader.choose("Workload", "gdn");
    await reader.click(reader.tab.getByRole("button", { name: /^gdn_forward fp32 on NVIDIA H200, cuda/ }), "the cell gdn_forward, H200");
    return [await reader.read(reader.tab.locator(".answers li")), await reader.read(reader.tab.locator(".ladder tr", { hasText: "torch_compiled" }))];
  },
  "Which kernel would pay most to improve, and why?": async reader => {
    await tab("Where work pays")(reader);
    return [await reader.read(reader.tab.locator("tbody tr"))];
  },
  "Does the claim on column-major data hold today?": async reader => {
    await tab("Claims")(reader);
    await reader.type(reader.tab.getByLabel("Search claims"), "column-major");
    return [await reader.read(reader.tab.locator("tbody tr"))];
  },
  "How portable is the best variant?": async reader => {
    await tab("Portability")(reader);
    return [await reader.read(reader.tab.locator("tbody tr", { hasText: "svm_rbf/rbf_rows" }))];
  },
  "What got slower since last night?": async reader => {
    await tab("History")(reader);
    const night = reader.tab.locator("#main p").first();
    return [await reader.read(night), ...(await reader.tab.locator("tbody tr").count() ? [await reader.read(reader.tab.locator("tbody tr"))] : [])];
  },
};

for (const [question, ask] of Object.entries(QUESTIONS)) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const reader = new Reader(await context.newPage());
  const complaints = [];
  reader.tab.on("pageerror", error => complaints.push(error.message));
  reader.tab.on("console", said => said.type() === "error" && complaints.push(said.text()));
  const began = Date.now();
  await reader.tab.goto(address);
  await reader.tab.waitForSelector("#main *");
  const load = await reader.tab.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd));
  try {
    const answer = await ask(reader);
    const slow = reader.seconds >= 60;
    failed ||= slow || complaints.length > 0;
    console.log(`${question}\n  steps: ${reader.done.join(", ")}\n  loaded in ${load} ms; page and browser ${Date.now() - began} ms; a person, modelled: ${reader.seconds.toFixed(0)} s${slow ? " TOO LONG" : ""}\n  ${answer.join("\n  ")}`);
  } catch (error) {
    failed = true;
    console.log(`${question}\n  FAILED after ${reader.done.join(", ")}: ${error.message.split("\n")[0]}`);
  }
  if (complaints.length) console.log(`  ERRORS: ${complaints.join("; ")}`);
  await context.close();
}

const VIEWS = ["#", "#tab=pays", "#tab=claims", "#tab=portability", "#tab=modelled", "#tab=tuning", "#tab=ceilings", "#tab=failures", "#tab=history", "#tab=runs"];
for (const [width, colorScheme] of [[1440, "light"], [1440, "dark"], [900, "light"], [390, "light"], [390, "dark"]]) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  const page_ = await context.newPage();
  await page_.goto(address);
  await page_.waitForSelector(".cell");
  const open = await page_.locator(".cell").first().evaluate(of => { of.click(); return location.hash; });
  const key = await page_.locator(".ladder .variant").first().evaluate(of => { of.click(); return location.hash; });
  for (const view of [...VIEWS, open, key]) {
    await page_.goto("about:blank");
    await page_.goto(address + view);
    await page_.waitForSelector("#main *");
    await page_.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
    const { violations } = await page_.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const over = await page_.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    failed ||= violations.length > 0 || over > 0;
    if (violations.length || over > 0) console.log(`axe ${width} ${colorScheme} ${view}: overflow ${over}; ${violations.map(of => `${of.id} (${of.impact}, ${of.nodes.length}: ${of.nodes[0].target} ${of.nodes[0].any[0]?.message || ""})`).join("; ")}`);
  }
  console.log(`axe-core: ${VIEWS.length + 2} views at ${width}, ${colorScheme}`);
  await context.close();
}

const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const keyboard = await context.newPage();
await keyboard.goto(address);
await keyboard.waitForSelector(".cell");
for (let presses = 0; presses < 60 && !(await keyboard.evaluate(() => document.activeElement.classList.contains("cell"))); presses++) await keyboard.keyboard.press("Tab");
const first = await keyboard.evaluate(() => document.activeElement.getAttribute("aria-label"));
await keyboard.keyboard.press("Enter");
const inside = await keyboard.evaluate(() => Boolean(document.activeElement.closest("#drawer")));
await keyboard.keyboard.press("Escape");
const back = await keyboard.evaluate(() => document.activeElement.getAttribute("aria-label"));
failed ||= !inside || back !== first;
console.log(`keyboard: ${inside && back === first ? "opens a cell, closes it, and is where it was" : `FAILED (${first}, ${inside}, ${back})`}`);
await browser.close();
process.exit(failed ? 1 : 0);
