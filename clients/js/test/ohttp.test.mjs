// Look-ups through a relay (Oblivious HTTP), and the view of each party.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "../../../target/npm/node.js";
import { MemoryStorage, Scratch, proxy, rows, valueOf } from "./harness.mjs";

const scratch = new Scratch();
const keys = join(scratch.dir, "gateway.json");
const tokens = join(scratch.dir, "tokens.json");
const rotate = () => scratch.hushdb("gateway-key", "rotate", "--keys", keys);
const text = (value) => value && value.text();
/** A name at which nobody answers: a direct request would fail. */
const NOWHERE = "http://hush.example";
let url, relay, watched;

before(async () => {
  const by = ["--key", "k", "--value", "v"];
  const names = ["colpack", "onion"].map((name) => scratch.build(name, rows(300), ...by, "--protocol", name));
  names.push(scratch.build("simple", rows(3000, 2000), ...by, "--protocol", "simple"));
  rotate();
  url = await scratch.serve(names, "--gateway-keys", keys);
  relay = await scratch.start("relay", "--gateway", url);
  watched = await proxy(relay);
});
after(async () => {
  await watched.close();
  await scratch.stop();
});

/** Looks a key up, and returns the value and all requests that the relay saw. */
async function seen(name, key, options = {}) {
  watched.requests.length = 0;
  const table = await (await connect(NOWHERE, { relay: watched.url, ...options })).open(name);
  const found = await table.get(key);
  assert.ok(watched.requests.every(({ headers }) => headers.authorization === undefined));
  return [text(found), watched.requests.map(({ method, path, body, received }) => [method, path, body.length, received])];
}

for (const name of ["colpack", "onion", "simple"]) {
  test(`a relay sees the table and the number of look-ups, ${name}`, async () => {
    const [found, expected] = await seen(name, "k7");
    assert.equal(found, valueOf(7, name === "simple" ? 2000 : 40));
    assert.deepEqual(expected[0].slice(0, 3), ["GET", "/", 0], "the keys of the server, first");
    assert.ok(expected.slice(1).every(([method, path]) => method === "POST" && path === "/"));
    for (const key of ["absent", "", "x".repeat(4096)]) assert.deepEqual((await seen(name, key))[1], expected);
  });
}

test("a long hint comes in pieces", async () => {
  const table = await (await connect(NOWHERE, { relay: watched.url })).open("simple");
  const direct = await (await connect(url)).open("simple");
  assert.ok(direct.stats.setupBytesDown > 4 << 20, `${direct.stats.setupBytesDown} bytes`);
  assert.equal(table.stats.setupBytesDown, direct.stats.setupBytesDown);
});

test("every way has its own evaluation keys", async () => {
  const ohttpKeys = new Uint8Array(await (await fetch(`${url}/.well-known/ohttp-gateway`)).arrayBuffer());
  const storage = new MemoryStorage();
  for (const round of [1, 2]) {
    for (const options of [{}, { relay }, { relay, ohttpKeys }]) {
      const table = await (await connect(url, { storage, ...options })).open("onion");
      assert.equal(text(await table.get("k9")), valueOf(9));
      assert.equal(table.stats.keyBytesUp > 0, round === 1);
    }
  }
  assert.equal(storage.seeds.size, 3);
});

test("tokens are sealed for keys that are surely the server's", async () => {
  const token = scratch.hushdb("token", "create", "--tokens", tokens, "--name", "alice").trim();
  const guarded = await scratch.serve(["colpack"], "--gateway-keys", keys, "--tokens", tokens);
  const before = await proxy(await scratch.start("relay", "--gateway", guarded));
  const ohttpKeys = new Uint8Array(await (await fetch(`${guarded}/.well-known/ohttp-gateway`)).arrayBuffer());
  const table = await (await connect(NOWHERE, { relay: before.url, ohttpKeys, token })).open();
  assert.equal(text(await table.get("k11")), valueOf(11));
  assert.ok(before.requests.length > 0 && before.requests.every(({ headers }) => headers.authorization === undefined));
  await assert.rejects(connect(NOWHERE, { relay: before.url, token }), { code: "token_in_the_open", message: /ohttpKeys/ });
  await assert.rejects(connect(NOWHERE, { relay: before.url, ohttpKeys }), { code: "unauthorized" });
  await before.close();
});

test("what is no relay, and keys that are none or old", async () => {
  const other = (status, type, body) => proxy(relay, (_, response) => !!response.writeHead(status, { "content-type": type }).end(body));
  const site = await other(200, "text/html", "<html>");
  await assert.rejects(connect(url, { relay: site.url }), { code: "relay", message: /no keys of the server.*ohttpKeys/ });
  await site.close();
  await assert.rejects(connect(url, { relay: "relay" }), { code: "url" });
  await assert.rejects(connect(url, { relay: 5 }), { code: "options", message: /'relay' is a string/ });
  await assert.rejects(connect(url, { ohttpKeys: new Uint8Array(3) }), { code: "options", message: /'relay'/ });
  await assert.rejects(connect(url, { relay, ohttpKeys: new Uint8Array(3) }), { code: "relay", message: /no key configuration/ });
  const forging = await proxy(relay, (request, response) => {
    if (request.method !== "POST") return false;
    return !!response.writeHead(200, { "content-type": "message/ohttp-res" }).end(Buffer.alloc(100));
  });
  await assert.rejects(connect(url, { relay: forging.url }), { code: "relay", message: /does not open/ });
  await forging.close();
});
