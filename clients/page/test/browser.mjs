// Actions of a user on the page, in Chromium.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

const tools = createRequire(new URL("../../../target/page-tools/package.json", import.meta.url));
const { chromium } = tools("playwright-core");
const axe = tools("axe-core");
let browser;

export async function launch() {
  const executablePath = execFileSync("sh", ["-c", 'command -v "${CHROMIUM:-chromium}"'], { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  return browser;
}

/** Opens the page at a table. Every error in its console fails the test. */
export async function open(url, { table = "people", ...options } = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.complaints = [];
  page.asked = [];
  page.on("console", (message) => page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  context.on("request", (request) => page.asked.push(new URL(request.url()).origin));
  await page.goto(`${url}/#${table}`);
  return page;
}

export async function ready(page) {
  await page.waitForSelector("#lookup:not([hidden])");
  return page;
}

/** Looks a key up with the page's form, and returns the status text. */
export async function lookUp(page, key) {
  await page.fill("#key", key);
  await page.click("#lookup-form button");
  await page.waitForFunction(() => /^(Found|This key is not)/.test(document.querySelector("#outcome").innerText));
  await page.waitForSelector("#lookup-form button:not([aria-disabled])");
  const texts = await page.locator("#outcome, #found").allInnerTexts();
  return texts.join(" ").replaceAll(/\s+/g, " ");
}

/** Looks a key up, and returns the message of the failure. Checks that nothing of an earlier look-up is left. */
export async function refused(page, key) {
  await page.fill("#key", key);
  await page.press("#key", "Enter");
  await page.waitForSelector("#outcome.error");
  const left = await page.locator("#found > *, #requests > *, #seen, #times").filter({ visible: true }).count();
  assert.equal(left, 0);
  return page.locator("#outcome").innerText();
}

export async function compare(page, first, second) {
  await page.fill("#first", first);
  await page.fill("#second", second);
  await page.click("#compare-form button");
  await page.waitForSelector("#compared:not([hidden])");
  await page.waitForSelector("#compare-form button:not([aria-disabled])");
}

/** Checks labels and contrast. */
export async function accessible(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  assert.deepEqual(told, []);
  assert.ok(passes.some(({ id }) => id === "color-contrast"));
}

/** Checks that nothing is wider than the window, except elements that scroll. */
export async function fits(page) {
  const wide = await page.evaluate(() => {
    const tooWide = (element) => element.getBoundingClientRect().right > innerWidth + 1 || element.getBoundingClientRect().left < -1;
    const all = [...document.querySelectorAll("body *")].filter((element) => !element.closest(".wide *, .hidden") && tooWide(element));
    const cut = [...document.querySelectorAll("pre, .fields")].filter((element) => element.scrollWidth > element.clientWidth);
    return [document.documentElement, ...all, ...cut]
      .filter((element) => element !== document.documentElement || element.scrollWidth > innerWidth)
      .map(({ tagName, id, className }) => `${tagName} ${id} ${className}`);
  });
  assert.deepEqual(wide, [], `at ${JSON.stringify(page.viewportSize())}`);
}

export async function close(page) {
  await page.context().close();
  assert.deepEqual(page.complaints, []);
}
