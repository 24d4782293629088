// The page that `hushdb serve` shows, in a real Chromium: as people see it, by keyboard, on a phone, and for who does not see it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { Scratch, proxy } from "../../js/test/harness.mjs";

const tools = createRequire(new URL("../../../target/page-tools/package.json", import.meta.url));
const { chromium } = tools("playwright-core");
const axe = tools("axe-core");

const people = Array.from({ length: 2000 }, (_, i) => ({
  email: `user${i}@example.org`,
  name: i === 7 ? "<img src=x onerror=alert(1)>" : `Name ${i}`,
  city: ["Oslo", "Bern", "Lima"][i % 3],
}));
const words = Array.from({ length: 300 }, (_, i) => ({ v: `word ${i}` }));
const scratch = new Scratch();
let served, seen, browser;

before(async () => {
  const by = ["--key", "email", "--value"];
  scratch.build("people", people, ...by, "name", "--value", "city");
  scratch.build("hinted", people, ...by, "name", "--protocol", "simple");
  scratch.build("keyed", people, ...by, "name", "--protocol", "onion");
  scratch.build("words", words, "--value", "v");
  served = await scratch.serve(["people", "hinted", "keyed", "words"]);
  seen = await proxy(served);
  const executablePath = execFileSync("sh", ["-c", 'command -v "${CHROMIUM:-chromium}"'], { encoding: "utf8" }).trim();
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
});
after(async () => {
  await browser?.close();
  await seen?.close();
  await scratch.stop();
});

/** The page, open at a table. Whatever it complains of fails the test. */
async function open(url = seen.url, { table = "people", ...options } = {}) {
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

async function ready(page) {
  await page.waitForSelector("#lookup:not([hidden])");
  return page;
}

/** Looks a key up, by its form. What is said of it. */
async function lookUp(page, key) {
  await page.fill("#key", key);
  await page.click("#lookup-form button");
  await page.waitForSelector("#found h4");
  return (await page.locator("#found").innerText()).replaceAll(/\s+/g, " ");
}

async function close(page) {
  await page.context().close();
  assert.deepEqual(page.complaints, []);
}

test("a look-up, and exactly what the server saw of it", async () => {
  const page = await ready(await open());
  seen.requests.length = 0;
  assert.match(await lookUp(page, "user10@example.org"), /^Found: .* name Name 10 city Bern$/);
  const own = seen.requests.filter(({ method }) => method === "POST");
  assert.equal(own.length, 1);
  const [{ body, received, path }] = own;
  const request = (await page.locator("#requests tbody tr").innerText()).replaceAll(",", "");
  assert.match(request, new RegExp(`POST ${path}\\s+${body.length} B\\s+${received} B`));
  // A byte a dot, and a colour a byte.
  const dots = await page.evaluate(() => {
    const canvas = document.querySelector("#picture");
    return Array.from(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data);
  });
  const colours = new Map();
  body.forEach((byte, at) => {
    const colour = String(dots.slice(4 * at, 4 * at + 4));
    assert.equal(colours.get(byte) ?? colour, colour, `byte ${at}`);
    colours.set(byte, colour);
  });
  assert.ok(new Set(colours.values()).size > 200);
  const entropy = (await page.locator("#picture-caption").innerText()).match(/([\d.]+) bits of entropy/);
  assert.ok(Number(entropy[1]) > 7.9, entropy[0]);
  assert.match(await page.getAttribute("#bar", "aria-label"), /in all: encrypt .* ms, network and server .*, decrypt/);
  assert.equal(await page.locator("#bar span").count(), 3);
  assert.ok(!page.url().includes("user10"));
  await close(page);
});

test("a key that is not there, and text that looks like markup", async () => {
  const page = await ready(await open());
  assert.match(await lookUp(page, "nobody@example.org"), /^This key is not in the table/);
  assert.match(await lookUp(page, "user7@example.org"), /name <img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator("#found img").count(), 0);
  await close(page);
});

test("two look-ups look the same", async () => {
  const page = await ready(await open());
  await page.fill("#first", "user1@example.org");
  await page.fill("#second", "nobody@example.org");
  await page.click("#compare-form button");
  await page.waitForSelector("#compared:not([hidden])");
  const verdict = await page.locator("#verdict").innerText();
  assert.match(verdict, /^One is there, the other one not there\. The server saw the same requests, of the same lengths/);
  const cells = await page.locator("#differences td").allInnerTexts();
  assert.equal(cells[0], "POST query");
  for (const at of [0, 2, 4]) assert.equal(cells[at], cells[at + 1]);
  assert.ok(parseFloat(cells[6]) < 2, cells[6]);
  const [first, second] = await page.evaluate(() =>
    ["first", "second"].map((name) => document.querySelector(`#${name}-picture`).toDataURL()),
  );
  assert.notEqual(first, second);
  await close(page);
});

test("what is sent once makes a difference, which the page does not hide", async () => {
  const page = await ready(await open(seen.url, { table: "keyed" }));
  await page.fill("#first", "user1@example.org");
  await page.fill("#second", "user2@example.org");
  await page.click("#compare-form button");
  await page.waitForSelector("#compared:not([hidden])");
  assert.match(await page.locator("#verdict").innerText(), /^These differ: requests, .*compare again/);
  await page.click("#compare-form button");
  await page.waitForFunction(() => document.querySelector("#verdict").innerText.startsWith("One is there"));
  await close(page);
});

test("a table with a hint, and one by position", async () => {
  const page = await ready(await open(seen.url, { table: "hinted" }));
  assert.match(await lookUp(page, "user3@example.org"), /Name 3$/);
  await page.selectOption("#table", "words");
  await page.waitForFunction(() => document.querySelector("#key-label").innerText === "Position");
  assert.match(await lookUp(page, "299"), /word 299$/);
  await page.fill("#key", "x");
  await page.press("#key", "Enter");
  await page.waitForFunction(() => document.querySelector("#found").innerText.startsWith("A position is a number"));
  await page.fill("#key", "300");
  await page.press("#key", "Enter");
  await page.waitForFunction(() => /300.*299|no record|from 0/.test(document.querySelector("#found").innerText));
  assert.match(page.url(), /#words$/);
  await close(page);
});

test("what else the table could be", async () => {
  const page = await ready(await open());
  await page.waitForSelector("#plan:not([hidden])");
  const plan = await (await fetch(`${served}/v1/tables/people/plan`)).json();
  assert.ok(plan.offers.length > 5);
  assert.equal(await page.locator("#plot circle.dot").count(), plan.offers.length);
  assert.equal(await page.locator("#plot circle.own").count(), 1);
  await page.click("summary");
  assert.equal(await page.locator("#offers tr").count(), plan.offers.length + 1);
  const command = await page.locator("#offers tr.own code").innerText();
  assert.equal(command, plan.table.options);
  await close(page);
});

test("nothing is asked of anybody else", async () => {
  const page = await ready(await open());
  await lookUp(page, "user1@example.org");
  await page.waitForSelector("#plan:not([hidden])");
  assert.ok(page.asked.length > 10);
  assert.deepEqual([...new Set(page.asked)], [seen.url]);
  const refused = await page.evaluate(() =>
    fetch("http://127.0.0.2:9/").then(
      () => "asked",
      () => "refused",
    ),
  );
  assert.equal(refused, "refused");
  assert.ok(page.complaints.some((text) => text.includes("Content Security Policy")), String(page.complaints));
  const markup = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<p>";
    } catch (error) {
      return error.name;
    }
  });
  assert.equal(markup, "TypeError");
  page.complaints = [];
  await close(page);
});

test("by keyboard alone", async () => {
  const page = await ready(await open());
  const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  const order = [];
  for (const wanted of ["table", "key", "Look up", "first", "second", "Compare"]) {
    await page.keyboard.press("Tab");
    order.push(await focus());
    if (wanted === "key") {
      await page.keyboard.type("user4@example.org");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#found h4");
    }
  }
  assert.deepEqual(order, ["table", "key", "Look up", "first", "second", "Compare"]);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none");
  await close(page);
});

for (const [name, options] of Object.entries({
  desktop: { viewport: { width: 1280, height: 900 } },
  "a phone, dark": { viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true, isMobile: true },
})) {
  test(`labels, contrast and width: ${name}`, async () => {
    const page = await ready(await open(seen.url, options));
    await lookUp(page, "user1@example.org");
    await page.fill("#first", "user1@example.org");
    await page.click("#compare-form button");
    await page.waitForSelector("#compared:not([hidden])");
    await page.waitForSelector("#plan:not([hidden])");
    await page.click("summary");
    await page.evaluate(axe.source);
    const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    assert.deepEqual(told, []);
    assert.ok(passes.some(({ id }) => id === "color-contrast"));
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${wide} of ${room}`);
    await close(page);
  });
}

test("a server that asks for a token", async () => {
  const tokens = `${scratch.dir}/tokens.json`;
  const token = scratch.hushdb("token", "create", "--tokens", tokens, "--name", "browser").trim().split(/\s+/).at(-1);
  const url = await scratch.serve(["people"], "--tokens", tokens);
  const page = await open(url);
  await page.waitForSelector("#token-form:not([hidden])");
  await page.fill("#token", "hush_wrong");
  await page.press("#token", "Enter");
  await page.waitForFunction(() => document.querySelector("#state").innerText !== "");
  await page.fill("#token", token);
  await page.press("#token", "Enter");
  await ready(page);
  assert.match(await lookUp(page, "user10@example.org"), /Name 10/);
  await page.waitForSelector("#plan:not([hidden])");
  // The browser itself says of each refused request that it failed.
  page.complaints = page.complaints.filter((text) => !text.includes("401"));
  await close(page);
});

test("a server that is gone", async () => {
  const other = new Scratch();
  other.build("people", people, "--key", "email", "--value", "name");
  const page = await ready(await open(await other.serve(["people"])));
  await other.stop();
  await page.fill("#key", "user1@example.org");
  await page.press("#key", "Enter");
  await page.waitForSelector("#found.error");
  assert.match(await page.locator("#found").innerText(), /cannot be reached|Failed to fetch/);
  // By the connection that was there, or the next one.
  page.complaints = page.complaints.filter((text) => !/ERR_CONNECTION_(REFUSED|RESET|CLOSED)/.test(text));
  await close(page);
});
