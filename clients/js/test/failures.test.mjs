// Failures in the network, on the server, and in the caller's program.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "../../../target/npm/node.js";
import { MemoryStorage, Scratch, proxy, rows, valueOf } from "./harness.mjs";

const scratch = new Scratch();
let url;

before(async () => {
  const by = ["--key", "k", "--value", "v"];
  scratch.build("colpack", rows(300), ...by, "--protocol", "colpack");
  scratch.build("simple", rows(300, 2000), ...by, "--protocol", "simple");
  url = await scratch.serve(["colpack", "simple"]);
});
after(() => scratch.stop());

test("URLs and options that are none", async () => {
  for (const [own, options] of [["http://user:secret@127.0.0.1:1", {}], ["http://127.0.0.1:1", { relay: "https://user:secret@relay.example" }]]) {
    await assert.rejects(connect(own, options), (error) => error.code === "url" && /leave them out/.test(error.message) && !/secret/.test(error.message));
  }
  await assert.rejects(connect("no url"), { code: "url", name: "HushError" });
  await assert.rejects(connect("ftp://localhost"), { code: "url" });
  await assert.rejects(connect(url, { epoch: "12" }), { code: "options", message: /64 hex/ });
  await assert.rejects(connect(url, { token: "two words" }), { code: "options" });
  await assert.rejects(connect("http://hush.example", { token: "t" }), { code: "token_in_the_open", message: /https/ });
});

test("options that are mistyped", async () => {
  for (const [options, said] of [
    [{ tokn: "x" }, /connect has no option 'tokn': it has token, signal/],
    [{ toString: "x" }, /no option 'toString'/],
    [{ token: 5 }, /'token' is a string/],
    [{ timeoutMs: "1000" }, /'timeoutMs' is a whole number from 1 to 2147483647/],
    [{ timeoutMs: Infinity }, /'timeoutMs'/],
    [{ attempts: 0 }, /'attempts'/],
    [{ attempts: null }, /'attempts'/],
    [{ lookupsPerKey: 2 ** 21 }, /'lookupsPerKey'/],
    [{ onProgress: {} }, /'onProgress' is a function/],
    [{ signal: new AbortController() }, /'signal' is an AbortSignal/],
    [{ storage: localStorageLike() }, /'storage' is a HushStorage, or null/],
    ["token", /the options of connect are an object/],
    [null, /the options of connect are an object/],
  ]) {
    await assert.rejects(connect(url, options), { code: "options", name: "HushError", message: said });
  }
  const server = await connect(url, { token: undefined, storage: null });
  await assert.rejects(server.open({}), { code: "options", message: /a table is a string/ });
  await assert.rejects(server.open("colpack", { timeoutMs: 5 }), { code: "options", message: /open has no option 'timeoutMs'/ });
  const table = await server.open("colpack");
  await assert.rejects(table.get("k1", { singal: AbortSignal.abort() }), { code: "options", message: /'singal'/ });
  await assert.rejects(table.getMany(["k1"], new AbortController()), { code: "options" });
  // Both are iterable, but their items are letters and bytes.
  await assert.rejects(table.getMany("k1"), { code: "bad_key", message: /array/ });
  await assert.rejects(table.getMany(new Uint8Array(2)), { code: "bad_key" });
  assert.equal(table.stats.queries, 0);
});

function localStorageLike() {
  return { getItem() {}, setItem() {} };
}

test("no server, and a server of something else", async () => {
  await assert.rejects(connect("http://127.0.0.1:1", { attempts: 1 }), { code: "unreachable", message: /ECONNREFUSED|bad port/ });
  await assert.rejects(connect(`${url}/elsewhere`), { code: "not_found", kind: "Other", status: 404 });
  const other = await proxy(url, (_, response) => response.end("<html>") !== undefined);
  await assert.rejects(connect(other.url), { code: "not_hushdb" });
  await other.close();
  const full = await proxy(url, (_, response) => response.writeHead(413, { server: "nginx" }).end() !== undefined);
  await assert.rejects(connect(full.url), { code: "proxy", status: 413, message: /\(nginx\) says that a request without a body is too long/ });
  await full.close();
  const location = "https://elsewhere.example/v1/tables";
  const moved = await proxy(url, (_, response) => response.writeHead(302, { location }).end() !== undefined);
  await assert.rejects(connect(moved.url), { code: "moved", message: /moved to https:\/\/elsewhere\.example: / });
  await moved.close();
});

test("a server that goes away, and comes back", async () => {
  let isAway = true;
  let away = 0;
  const between = await proxy(url, (request, response) => {
    if (request.method !== "POST" || !isAway) return false;
    away += 1;
    if (away === 2) isAway = false;
    response.destroy();
    return true;
  });
  const told = [];
  const table = await (await connect(between.url, { onProgress: (progress) => told.push(progress) })).open("colpack");
  assert.equal((await table.get("k7")).text(), valueOf(7));
  assert.equal(table.stats.queries, 3);
  assert.deepEqual(told.map(({ kind, waitMs }) => [kind, waitMs]), [["retry", 200], ["retry", 400]]);
  // Every attempt sends fresh ciphertexts.
  const bodies = between.requests.filter(({ method }) => method === "POST").map(({ body }) => body.toString("base64"));
  assert.equal(new Set(bodies).size, 3);
  await between.close();
  await assert.rejects(table.get("k7"), { code: "unreachable" });
});

test("a busy server's wait is kept to", async () => {
  let times = 0;
  const problem = JSON.stringify({ code: "overloaded", detail: "too many", title: "", status: 503, type: "" });
  const busy = await proxy(url, (request, response) => {
    if (request.method !== "POST" || times++ > 0) return false;
    response.writeHead(503, { "retry-after": "1", "content-type": "application/problem+json" }).end(problem);
    return true;
  });
  const told = [];
  const table = await (await connect(busy.url, { onProgress: (progress) => told.push(progress) })).open("colpack");
  assert.ok(await table.get("k7"));
  assert.deepEqual(told.map(({ kind, waitMs }) => [kind, waitMs]), [["retry", 1000]]);
  await busy.close();
});

test("a hint that breaks off is resumed, and one that is another is refused", async () => {
  let cut = 2;
  const cutting = await proxy(url, (request, response) => {
    if (!request.path.startsWith("/v1/blobs/") || cut-- <= 0) return false;
    const range = request.headers.range;
    fetch(url + request.path, { headers: range ? { range } : {} }).then(async (answer) => {
      const body = Buffer.from(await answer.arrayBuffer());
      const headers = Object.fromEntries(answer.headers);
      response.writeHead(answer.status, headers);
      response.write(body.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 50));
    });
    return true;
  });
  const server = await connect(cutting.url);
  const table = await server.open("simple");
  assert.equal((await table.get("k9")).text(), valueOf(9, 2000));
  const ranges = cutting.requests.filter(({ path }) => path.startsWith("/v1/blobs/")).map(({ headers }) => headers.range);
  assert.equal(ranges.length, 3);
  assert.equal(ranges[0], undefined);
  assert.ok(ranges.slice(1).every((range) => /^bytes=[1-9]\d*-$/.test(range)), String(ranges));
  await cutting.close();

  const lying = await proxy(url, (request, response) => {
    if (!request.path.startsWith("/v1/blobs/")) return false;
    fetch(url + request.path).then(async (answer) => {
      const body = Buffer.from(await answer.arrayBuffer());
      body[1000] ^= 1;
      response.end(body);
    });
    return true;
  });
  await assert.rejects((await connect(lying.url)).open("simple"), { code: "hint_mismatch" });
  await lying.close();
  const careful = await connect(url, { maxHint: 1000 });
  await assert.rejects(careful.open("simple"), { code: "hint_too_long", message: /maxHint:/ });
});

test("a silent server, and callers that give up", async () => {
  const silent = await proxy(url, (request) => request.method === "POST");
  const server = await connect(silent.url, { timeoutMs: 300 });
  const table = await server.open("colpack");
  await assert.rejects(table.get("k1"), { code: "timeout" });

  // The time of a call includes attempts and waits.
  const refusing = await proxy(url, (request, response) => request.method === "POST" && response.destroy() !== undefined);
  const hurried = await (await connect(refusing.url, { timeoutMs: 500, attempts: 100 })).open("colpack");
  const begun = performance.now();
  await assert.rejects(hurried.get("k1"));
  assert.ok(performance.now() - begun < 700);
  await refusing.close();

  const patient = await (await connect(silent.url)).open("colpack");
  const controller = new AbortController();
  const asked = patient.get("k1", { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("changed my mind")), 100);
  await assert.rejects(asked, (error) => error.code === "aborted" && error.cause.message === "changed my mind");
  await assert.rejects(patient.get("k1", { signal: AbortSignal.abort() }), { code: "aborted" });
  await assert.rejects(connect(url, { signal: AbortSignal.abort() }), { code: "aborted" });
  await silent.close();

  // An abort during the wait for another attempt leaves the table open.
  let isDown = true;
  const down = await proxy(url, (request, response) => isDown && request.method === "POST" && response.destroy() !== undefined);
  const again = await (await connect(down.url)).open("colpack");
  await assert.rejects(again.get("k2", { signal: AbortSignal.timeout(100) }), { code: "aborted" });
  isDown = false;
  assert.equal((await again.get("k2")).text(), valueOf(2));
  await down.close();

  // After an abort during the download of a hint, the server object resumes the download.
  let isSlow = true;
  const slow = await proxy(url, (request, response) => {
    if (!isSlow || !request.path.startsWith("/v1/blobs/")) return false;
    fetch(url + request.path).then(async (answer) => {
      const body = Buffer.from(await answer.arrayBuffer());
      response.writeHead(200, { "content-length": body.length });
      response.write(body.subarray(0, 50_000));
    });
    return true;
  });
  const slowly = await connect(slow.url);
  const giveUp = new AbortController();
  const opening = slowly.open("simple", { signal: giveUp.signal });
  setTimeout(() => giveUp.abort(), 300);
  await assert.rejects(opening, { code: "aborted" });
  isSlow = false;
  const opened = await slowly.open("simple");
  assert.equal((await opened.get("k3")).text(), valueOf(3, 2000));
  assert.match(slow.requests.filter(({ path }) => path.startsWith("/v1/blobs/")).at(-1).headers.range, /^bytes=[1-9]/);
  await slow.close();
});

test("tokens", async () => {
  const file = join(scratch.dir, "tokens.json");
  const token = scratch.hushdb("token", "create", "--tokens", file, "--name", "alice").trim();
  const guarded = await scratch.serve(["colpack"], "--tokens", file);
  const table = await (await connect(guarded, { token })).open();
  assert.equal((await table.get("k11")).text(), valueOf(11));
  await assert.rejects(connect(guarded), { code: "unauthorized", kind: "NotAllowed", message: /connect\(url, \{ token \}\)/ });
  await assert.rejects(connect(guarded, { token: "hush_nonsense" }), { code: "unauthorized" });
});

test("a table that changes, and one that is replaced", async () => {
  const by = ["--key", "k", "--value", "v"];
  scratch.build("changing", rows(300), ...by, "--protocol", "colpack", "--updatable");
  const at = await scratch.serve(["changing"], "--watch");
  const table = await (await connect(at)).open();
  assert.equal((await table.get("k5")).text(), valueOf(5));
  const before = table.facts.epoch;
  const { writeFileSync } = await import("node:fs");
  const changes = join(scratch.dir, "changes.jsonl");
  writeFileSync(changes, '{"k": "k5", "v": "changed"}\n{"k": "new", "v": "added"}\n');
  scratch.hushdb("apply", join(scratch.dir, "changing"), changes, "--key", "k");
  for (let tries = 0; (await table.get("k5")).text() !== "changed"; tries++) {
    assert.ok(tries < 100, "the change was not taken up");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.notEqual(table.facts.epoch, before);
  const found = await table.getMany(["new", "k6", "absent"]);
  assert.deepEqual(found.map((value) => value && value.text()), ["added", valueOf(6), null]);
});

test("the epoch, and who has signed it, can be demanded", async () => {
  const table = await (await connect(url)).open("colpack");
  const { epoch } = table.facts;
  assert.ok(await (await connect(url, { epoch })).open("colpack"));
  await assert.rejects((await connect(url, { epoch: epoch.replace(/^./, (c) => (c === "0" ? "1" : "0")) })).open("colpack"), {
    code: "other_epoch",
  });
  const trust = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
  await assert.rejects((await connect(url, { trust })).open("colpack"), { code: "not_signed" });
});

test("of a publisher's tables the one that is asked for, and none that is older than one that was seen", async () => {
  const key = join(scratch.dir, "key");
  const trust = scratch.hushdb("keygen", key).trim();
  const signed = (serial) => ["--key", "k", "--value", "v", "--sign", key, "--sign-as", "table", "--serial", serial];
  scratch.build("old", rows(50), ...signed(7));
  scratch.build("new", rows(50), ...signed(8));
  const older = await scratch.serve(["old"], "--name", "table");
  const newer = await scratch.serve(["new"], "--name", "table");
  const storage = new MemoryStorage();
  const open = async (at, name, options = {}) => (await connect(at, { trust, storage, ...options })).open(name);
  assert.ok(await open(older, "table"));
  assert.ok(await open(newer, "table"));
  assert.deepEqual([...storage.serials.values()], ["8"]);
  await assert.rejects(open(older, "table"), { code: "older_table", message: /serial 7.*8/ });
  assert.ok(await open(older, "table", { storage: null }));
  await assert.rejects(open(newer, undefined), { code: "choose_table" });
  const renamed = await scratch.serve(["new"], "--name", "leaked");
  await assert.rejects(open(renamed, "leaked"), { code: "other_name", message: /'table', not 'leaked'/ });
  assert.ok(await open(renamed, undefined, { trust: `${trust}=table` }));
  await assert.rejects(connect(newer, { trust: `${trust}=a/b` }), { code: "options" });
});
