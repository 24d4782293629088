// Tests of the page of `hushdb serve` in a real Chromium: with a mouse, by keyboard, on a phone, and with a screen reader.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Scratch, proxy } from "../../js/test/harness.mjs";
import { close, compare, launch, lookUp, open, ready, refused } from "./browser.mjs";

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
  scratch.build("people", people, ...by, "name", "--value", "city", "--protocol", "colpack-s");
  scratch.build("hinted", people, ...by, "name", "--protocol", "simple");
  scratch.build("keyed", people, ...by, "name", "--protocol", "onion");
  scratch.build("small", people, ...by, "name", "--protocol", "download");
  scratch.build("words", words, "--value", "v", "--protocol", "simple");
  served = await scratch.serve(["people", "hinted", "keyed", "words", "small"]);
  seen = await proxy(served);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await seen?.close();
  await scratch.stop();
});

test("a look-up, and exactly what the server saw of it", async () => {
  const page = await ready(await open(seen.url));
  seen.requests.length = 0;
  assert.match(await lookUp(page, "user10@example.org"), /^Found: .* name Name 10 city Bern Copy Save$/);
  const own = seen.requests.filter(({ method }) => method === "POST");
  assert.equal(own.length, 1);
  const [{ body, received, path }] = own;
  const request = (await page.locator("#requests li").innerText()).replaceAll(/(\d),(\d)/g, "$1$2");
  assert.match(request, new RegExp(`The query\\s+POST ${path}\\s+${body.length} B sent, ${received} B received`));
  // Each byte is one dot, and each value has its own colour.
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
  const page = await ready(await open(seen.url));
  assert.match(await lookUp(page, "nobody@example.org"), /^This key is not in the table/);
  assert.match(await lookUp(page, "user7@example.org"), /name <img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator("#found img").count(), 0);
  await close(page);
});

test("two look-ups look the same", async () => {
  const page = await ready(await open(seen.url));
  await compare(page, "user1@example.org", "nobody@example.org");
  const verdict = await page.locator("#verdict").innerText();
  assert.match(verdict, /^The first is in the table, the second is not in the table\. The server saw the same requests/);
  const cells = await page.locator("#differences td").allInnerTexts();
  assert.equal(cells[0], "The query");
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
  await compare(page, "user1@example.org", "user2@example.org");
  assert.match(await page.locator("#verdict").innerText(), /^These differ: requests, .*compare again/);
  await page.click("#compare-form button");
  await page.waitForFunction(() => document.querySelector("#verdict").innerText.startsWith("The first is"));
  assert.match(await page.locator("#verdict").innerText(), /tell that they come from the same client/);
  await close(page);
});

test("keys that the server has lost are uploaded again, and the page says why", async () => {
  const page = await ready(await open(seen.url, { table: "keyed" }));
  await lookUp(page, "user1@example.org");
  const purposes = () => page.locator("#requests strong").allInnerTexts();
  assert.deepEqual(await purposes(), ["Evaluation keys, uploaded once", "The query"]);
  const lost = { status: 428, contentType: "application/problem+json", body: JSON.stringify({ code: "key_not_found", detail: "lost" }) };
  await page.route("**/query", (route) => route.fulfill(lost), { times: 1 });
  await lookUp(page, "user1@example.org");
  assert.deepEqual(await purposes(), ["The query", "Evaluation keys, uploaded once", "The query"]);
  assert.match(await page.locator("#requests em").innerText(), /^428: the server no longer has this browser's evaluation keys/);
  page.complaints = page.complaints.filter((text) => !text.includes("428"));
  await close(page);
});

test("a table with a hint, and one by position", async () => {
  const page = await ready(await open(seen.url, { table: "hinted" }));
  assert.match(await lookUp(page, "user3@example.org"), /Name 3 Copy Save$/);
  await page.selectOption("#table", "words");
  await page.waitForFunction(() => document.querySelector("#key-label").innerText === "Position");
  assert.match(await lookUp(page, "299"), /word 299 Copy Save$/);
  for (const wrong of ["x", ""]) assert.match(await refused(page, wrong), /^Type a position/);
  assert.match(await refused(page, "300"), /300.*299|no record|from 0/);
  assert.match(page.url(), /#words$/);
  await close(page);
});

test("a table that is downloaded", async () => {
  const page = await ready(await open(seen.url, { table: "small" }));
  seen.requests.length = 0;
  assert.match(await lookUp(page, "user10@example.org"), /Name 10/);
  assert.equal(seen.requests.filter(({ method }) => method === "POST").length, 0);
  assert.match(await page.locator("#facts").innerText(), /download[^]*nothing is sent/);
  assert.ok(await page.locator("#downloaded").isVisible());
  assert.ok(!(await page.locator("#also-seen").isVisible()));
  await close(page);
});

test("what else the table could be", async () => {
  const page = await ready(await open(seen.url));
  await page.waitForSelector("#plan:not([hidden])");
  const plan = await (await fetch(`${served}/v1/tables/people/plan`)).json();
  // So few records leave little to choose: a download is at least as good as most tables in every cost.
  assert.ok(plan.offers.length > 1);
  assert.equal(await page.locator("#plot circle.dot").count(), plan.offers.length);
  assert.equal(await page.locator("#plot circle.own").count(), 1);
  await page.click("summary");
  assert.equal(await page.locator("#offers tr").count(), plan.offers.length + 1);
  const command = await page.locator("#offers tr.own code").innerText();
  assert.equal(command, `hushdb build INPUT --key COLUMN ${plan.table.options} --out FOLDER`);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.click("#offers tr.own button");
  await page.waitForFunction(() => document.querySelector("#offers tr.own button").innerText === "Copied");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
  // Numbers have three digits and no exponent.
  const numbers = await page.locator("#offers .number, #plot text").allInnerTexts();
  assert.deepEqual(numbers.filter((text) => /\de|\d{4}/.test(text)), []);
  assert.match((await page.locator("#plot text").allTextContents()).join(), /the server's time/);
  await close(page);
});

test("nothing is asked of anybody else", async () => {
  const page = await ready(await open(seen.url));
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
  const page = await ready(await open(seen.url));
  const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  const order = [];
  const expected = ["table", "key", "Look up", "Copy", "Save", "first", "second", "Compare"];
  for (const wanted of expected) {
    await page.keyboard.press("Tab");
    order.push(await focus());
    if (wanted === "key") {
      await page.keyboard.type("user4@example.org");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#found dl");
    }
  }
  assert.deepEqual(order, expected);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none");
  await close(page);
});

test("a server that asks for a token", async () => {
  const tokens = `${scratch.dir}/tokens.json`;
  const token = scratch.hushdb("token", "create", "--tokens", tokens, "--name", "browser").trim().split(/\s+/).at(-1);
  const url = await scratch.serve(["people"], "--tokens", tokens);
  const page = await open(url);
  await page.waitForSelector("#token-form:not([hidden])");
  for (const wrong of ["hush_wrong", "no token"]) {
    await page.fill("#token", wrong);
    await page.press("#token", "Enter");
    await page.waitForFunction(() => /token/.test(document.querySelector("#state.error")?.innerText));
    await page.waitForSelector("#token-form:not([hidden]) button:not([aria-disabled])");
    assert.equal(await page.evaluate(() => document.activeElement.id), "token");
  }
  await page.fill("#token", token);
  await page.press("#token", "Enter");
  await ready(page);
  assert.match(await lookUp(page, "user10@example.org"), /Name 10/);
  await page.waitForSelector("#plan:not([hidden])");
  // After a token is revoked, the page asks for another one.
  await page.route("**/query", (route) => route.fulfill({ status: 401, json: { code: "unauthorized", detail: "gone" } }));
  await refused(page, "user10@example.org");
  await page.waitForSelector("#token-form:not([hidden])");
  // The browser itself logs each refused request.
  page.complaints = page.complaints.filter((text) => !text.includes("401"));
  await close(page);
});

test("a server that is gone", async () => {
  const other = new Scratch();
  other.build("people", people, "--key", "email", "--value", "name");
  const page = await ready(await open(await other.serve(["people"])));
  await lookUp(page, "user1@example.org");
  await other.stop();
  assert.match(await refused(page, "user1@example.org"), /cannot be reached|Failed to fetch/);
  // The failure may be on the open connection, or on the next one.
  page.complaints = page.complaints.filter((text) => !/ERR_CONNECTION_(REFUSED|RESET|CLOSED)/.test(text));
  await close(page);
});
