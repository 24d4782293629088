// The package in a real Chromium: in a page, in Web Workers, with IndexedDB.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "../../../target/npm-tools/node_modules/esbuild/lib/main.js";
import { Scratch, packed, rows, valueOf } from "./harness.mjs";

const program = process.env.CHROMIUM ?? "chromium";
const here = fileURLToPath(new URL(".", import.meta.url));
const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const scratch = new Scratch();
const bundles = join(scratch.dir, "bundles");
let url, site, origin, browser;
const by = ["--key", "k", "--value", "v"];
/** The requests of the package to the server. */
const requests = [];
/** The page's open request for a step, and the steps that wait for the page. */
let waiting, pending = [];

before(async () => {
  const names = ["colpack", "simple", "onion"].map((name) => scratch.build(name, rows(300), ...by, "--protocol", name));
  const gateway = join(scratch.dir, "gateway.json");
  scratch.hushdb("gateway-key", "rotate", "--keys", gateway);
  url = await scratch.serve(names, "--gateway-keys", gateway);
  site = createServer(answer);
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${site.address().port}`;
  const switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
  browser = spawn(program, [...switches, `--user-data-dir=${join(scratch.dir, "profile")}`, `${origin}/`], {
    stdio: "ignore",
    env: { ...process.env, HOME: scratch.dir },
    detached: true,
  });
  browser.once("error", (error) => pending.forEach(({ reject }) => reject(error)));
});
after(async () => {
  const ended = new Promise((resolve) => browser.once("exit", resolve));
  try {
    process.kill(-browser.pid, "SIGKILL"); // The whole process group: Chromium starts helpers.
    await ended;
  } catch {
    // The browser did not start.
  }
  site.closeAllConnections();
  site.close();
  await scratch.stop();
});

/** Answers a request to the origin, which has the page, the package and the server behind them. */
function answer(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/step") return step(request, response);
  if (pathname.startsWith("/v1/")) return pass(request, response);
  if (pathname === "/") {
    const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src *";
    response.writeHead(200, { "content-type": "text/html", "content-security-policy": policy });
    return response.end('<!doctype html><script type="module" src="/test/page.mjs"></script>');
  }
  const [, folder, ...path] = pathname.split("/");
  const file = join({ package: packed, bundles: bundles }[folder] ?? here, ...path);
  if (pathname.includes("..") || !existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": types[extname(file)] ?? "text/plain" });
  createReadStream(file).pipe(response);
}

function pass(request, response) {
  requests.push(`${request.method} ${request.url}`);
  const headers = { ...request.headers, host: new URL(url).host };
  const passed = httpRequest(url + request.url, { method: request.method, headers });
  passed.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(passed);
}

/** Takes the result of the page's last step, and answers with the next step once there is one. */
function step(request, response) {
  let said = "";
  request.setEncoding("utf8").on("data", (text) => (said += text));
  request.on("end", () => {
    const { result, error } = JSON.parse(said);
    const asked = pending[0]?.isAsked ? pending.shift() : undefined;
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(result);
    waiting = response;
    next();
  });
}

function next() {
  if (!waiting || !pending[0] || pending[0].isAsked) return;
  pending[0].isAsked = true;
  waiting.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(pending[0].step));
  waiting = undefined;
}

/** Runs a step in the page, and returns its result. */
function inPage(...step) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the page did not answer: ${step}`)), 60_000);
    const end = (settle) => (value) => {
      clearTimeout(late);
      settle(value);
    };
    pending.push({ step, resolve: end(resolve), reject: end(reject) });
    next();
  });
}

const expected = [valueOf(3), null];
const all = { colpack: expected, simple: expected, onion: expected };
const uploads = () => [...new Set(requests.filter((request) => request.startsWith("PUT ")))];

test("in Web Workers that start together, which use the same keys", async () => {
  const [first, second] = await inPage("inWorkers", 2, "lookUp");
  assert.deepEqual([first.found, second.found], [all, all]);
  assert.equal(uploads().length, 1, String(uploads()));
  assert.deepEqual(await inPage("kept"), [1, 1]);
});

test("in a page, which finds what the workers have kept", async () => {
  const { found, costs, told } = await inPage("lookUp");
  assert.deepEqual(found, all);
  assert.deepEqual(told, []);
  assert.equal(costs.onion.keys, 0);
  assert.ok(costs.simple.down < 10_000, `${costs.simple.down} bytes`);
  assert.deepEqual(await inPage("kept"), [1, 1]);
});

test("what is kept expires", async () => {
  await inPage("age", 59);
  const [{ costs }] = await inPage("inWorkers", 1, "lookUp"); // A worker opens the database anew.
  assert.ok(costs.onion.keys > 100_000, "keys of more than 30 days are not used");
  assert.ok(costs.simple.down < 10_000);
  assert.equal(uploads().length, 2);
  await inPage("age", 61);
  const [again] = await inPage("inWorkers", 1, "lookUp");
  assert.ok(again.costs.simple.down > 10_000, "a hint that was not used for 60 days is deleted");
  assert.deepEqual(await inPage("kept"), [1, 1]);
});

test("without randomness nothing is asked", async () => {
  const before = requests.length;
  assert.equal(await inPage("withoutRandomness"), "no_randomness");
  assert.deepEqual(await inPage("inWorkers", 1, "withoutRandomness"), ["no_randomness"]);
  assert.equal(requests.length, before);
});

test("bundled by esbuild, as the README says", async () => {
  const installed = join(scratch.dir, "node_modules/@hushdb");
  mkdirSync(installed, { recursive: true });
  symlinkSync(packed, join(installed, "client"));
  const programs = {
    file: `export { connect, initialize } from "@hushdb/client";
      import wasm from "@hushdb/client/hush.wasm";
      export const place = new URL(wasm, import.meta.url);`,
    inline: 'export { connect } from "@hushdb/client/inline";',
  };
  for (const [name, program] of Object.entries(programs)) {
    writeFileSync(join(scratch.dir, `${name}.js`), program);
    const options = { bundle: true, format: "esm", minify: true, loader: { ".wasm": "file" }, logLevel: "error" };
    await build({ ...options, absWorkingDir: scratch.dir, entryPoints: [`${name}.js`], outdir: bundles });
    assert.deepEqual(await inPage("inBundle", `/bundles/${name}.js`), valueOf(3), name);
  }
});

test("a server of another origin, which allows the page", async () => {
  const tokens = join(scratch.dir, "tokens.json");
  const token = scratch.hushdb("token", "create", "--tokens", tokens, "--name", "page").trim();
  const own = ["--tokens", tokens, "--rate-limit", "2", "--keys", join(scratch.dir, "own-keys.redb")];
  const allowing = await scratch.serve(["colpack", "simple", "onion"], "--allow-origin", `https://other.example,${origin}`, ...own);
  // Preflights, tokens, a hint and uploads of keys work across origins. The page can read the wait of a refusal.
  assert.deepEqual((await inPage("lookUp", allowing, { token })).found, all);
  assert.match(await inPage("otherOrigin", allowing, { token: "hush_wrong" }), /^unauthorized: /);
  const { busy, etag } = await inPage("refusal", allowing, { token });
  assert.ok(busy >= 1000 && etag, `${busy} ${etag}`);
});

test("through a relay, which allows the page", async () => {
  const relay = await scratch.start("relay", "--gateway", url, "--allow-origin", origin);
  assert.deepEqual((await inPage("lookUp", "http://hush.example", { relay })).found, all);
});

test("a server that does not allow the page", async () => {
  assert.match(await inPage("otherOrigin", url, {}), /^unreachable: .*does not allow this page \(serve --allow-origin http:/);
});
