// Tests of the page for each protocol, with binary values, long keys and names, at the widths of phones and desktops, light and dark.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Scratch } from "../../js/test/harness.mjs";
import { accessible, close, compare, fits, launch, lookUp, open, ready } from "./browser.mjs";

const WIDTHS = [320, 390, 768, 1280];
const scratch = new Scratch();
const presets = JSON.parse(scratch.hushdb("presets", "--json")).presets;
const protocols = [...new Set(presets.flatMap((preset) => preset.protocols))];
const long = "a-long-key-".repeat(20);
const bytes = Uint8Array.from({ length: 48 }, (_, at) => (at * 167) % 256);
const named = (protocol) => `${protocol}.`.padEnd(64, "a_long_name");
let url, browser;

before(async () => {
  const files = join(scratch.dir, "files");
  mkdirSync(files);
  for (let at = 0; at < 50; at++) writeFileSync(join(files, at === 0 ? long : `${at}`), bytes.map((byte) => byte ^ at));
  for (const protocol of protocols) {
    scratch.hushdb("build", files, "--protocol", protocol, "--out", join(scratch.dir, named(protocol)));
  }
  const fields = [{ k: "k", a_name_of_a_column_that_is_rather_long: "x".repeat(500), serial: 0, real: 0.1 }];
  scratch.build("fields", fields, "--key", "k", "--protocol", "frodo");
  url = await scratch.serve([...protocols.map(named), "fields"]);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await scratch.stop();
});

async function atAllWidths(page, isJudged) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      await fits(page);
    }
    if (isJudged) await accessible(page);
  }
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
}

for (const protocol of protocols) {
  test(`${protocol}: all widths, light and dark, and whether look-ups are linked`, async () => {
    // Labels and contrast depend only on whether look-ups are linked, and their check takes seconds.
    const isJudged = ["colpack", "hybrid"].includes(protocol);
    const page = await ready(await open(url, { table: named(protocol) }));
    assert.match(await lookUp(page, long), /^Found: 48 B of binary data 0000 00 a7 4e f5/);
    if (isJudged) await compare(page, long, "nobody");
    await page.waitForSelector("#plan:not([hidden])");
    await page.click("summary");
    await atAllWidths(page, isJudged);
    const facts = await (await fetch(`${url}/v1/tables/${named(protocol)}/plan`)).json();
    assert.equal(await page.locator("#linked").isVisible(), facts.table.linkable === "lookups");
    await close(page);
  });
}

test("binary values have text beside, as wide as there is room for; they are copied and saved", async () => {
  const page = await ready(await open(url, { table: named("colpack"), permissions: ["clipboard-read", "clipboard-write"] }));
  await lookUp(page, long);
  for (const [width, perLine] of [[1280, 16], [390, 8], [320, 4]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForFunction((lines) => document.querySelector(".dump").textContent.split("\n").length === lines, 48 / perLine);
  }
  const first = Array.from(bytes.subarray(0, 4), (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
  assert.equal((await page.locator(".dump").textContent()).split("\n")[0], `0000 00 a7 4e f5  ${first}`);
  await page.click("text=Copy as hex");
  await page.waitForSelector("text=Copied");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), Buffer.from(bytes).toString("hex"));
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("text=Save")]);
  assert.equal(file.suggestedFilename(), `${named("colpack")}-value.bin`);
  assert.deepEqual(new Uint8Array(readFileSync(await file.path())), bytes);
  await close(page);
});

test("fields are shown, copied and saved as they are; a page without the clipboard copies as well", async () => {
  const page = await ready(await open(url, { table: "fields" }));
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await lookUp(page, "k");
  await atAllWidths(page, true);
  await page.click("#found >> text=Copy");
  await page.waitForSelector("text=Copied");
  await page.fill("#key", "");
  await page.focus("#key");
  await page.keyboard.press("Control+V");
  assert.deepEqual(Object.keys(JSON.parse(await page.inputValue("#key"))).at(-1), "real");
  await close(page);
});

test("a protocol has one colour, on the page and in a picture of the planner", async () => {
  const picture = join(scratch.dir, "plan.svg");
  const machine = new URL("../../../crates/hush-build/src/planner/reference_machine.json", import.meta.url).pathname;
  scratch.hushdb("plan", "--records", 1_000_000, "--size", 100, "--key", "--all", "--machine", machine, "--plot", picture);
  const svg = readFileSync(picture, "utf8");
  const drawn = new Map();
  for (const [, colour, name] of svg.matchAll(/<circle [^>]*fill="(#\w{6})"[^>]*\/>\s*<text [^>]*>\s*([a-z-]+)\s*</g)) drawn.set(name, colour.toLowerCase());
  const colours = new Set();
  for (const protocol of protocols) {
    const page = await ready(await open(url, { table: named(protocol) }));
    await page.waitForSelector("#plan:not([hidden])");
    const marks = await page.evaluate(() =>
      [...document.querySelectorAll("#facts .named, #plot-legend .named, #offers .named")].map((element) => [
        element.innerText.replace("this table: ", ""),
        getComputedStyle(element.querySelector(".mark")).backgroundColor,
      ]),
    );
    const hex = (rgb) => "#" + rgb.match(/\d+/g).slice(0, 3).map((part) => Number(part).toString(16).padStart(2, "0")).join("");
    for (const [name, colour] of marks.filter(([, colour]) => colour !== "rgba(0, 0, 0, 0)")) {
      assert.equal(hex(colour), drawn.get(name) ?? hex(colour), name);
      if (name === protocol) colours.add(hex(colour));
    }
    await close(page);
  }
  assert.ok(drawn.size >= 10, [...drawn.keys()].join());
  assert.equal(colours.size, protocols.length);
});
