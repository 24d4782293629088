// Takes the pictures of docs/how-to/page.md from a server at URL: `node clients/page/test/pictures.mjs URL FOLDER KEY KEY`.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";

const [url, folder, key, other] = process.argv.slice(2);
if (!other) throw new Error("usage: pictures.mjs URL FOLDER KEY KEY");
const { chromium } = createRequire(new URL("../../../target/page-tools/package.json", import.meta.url))("playwright-core");
const executablePath = execFileSync("sh", ["-c", 'command -v "${CHROMIUM:-chromium}"'], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [name, options] of Object.entries({
  page: { viewport: { width: 1100, height: 900 } },
  "page-phone": { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
})) {
  const page = await (await browser.newContext(options)).newPage();
  await page.goto(url);
  await page.waitForSelector("#plan:not([hidden])");
  // The second look-up shows the usual times: its module is already compiled.
  for (let time = 0; time < 2; time++) {
    await page.fill("#key", key);
    await page.press("#key", "Enter");
    await page.waitForSelector("#lookup-form button:not([aria-disabled])");
  }
  await page.fill("#first", key);
  await page.fill("#second", other);
  await page.click("#compare-form button");
  await page.waitForSelector("#compared:not([hidden])");
  await page.evaluate(() => (document.activeElement.blur(), scrollTo(0, 0)));
  const path = join(folder, `${name}.jpg`);
  await page.screenshot({ path, type: "jpeg", quality: 55, fullPage: name === "page" });
}
await browser.close();
