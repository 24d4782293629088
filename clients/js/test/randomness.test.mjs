// `crypto.getRandomValues` is the only randomness: it determines all requests, and nothing is sent without it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect } from "../../../target/npm/node.js";
import { Scratch, packed, proxy, rows, valueOf } from "./harness.mjs";

const scratch = new Scratch();
let watched;

before(async () => {
  const by = ["--key", "k", "--value", "v"];
  const names = ["colpack", "onion", "simple"].map((name) => scratch.build(name, rows(300), ...by, "--protocol", name));
  watched = await proxy(await scratch.serve(names));
});
after(async () => {
  await watched.close();
  await scratch.stop();
});

/** Runs `body` with `crypto` in place of the global one. */
async function withCrypto(crypto, body) {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  try {
    return await body();
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
}

const without = [undefined, {}, { getRandomValues: () => { throw new Error("no entropy"); } }];

test("without it nothing is connected, opened or looked up", async () => {
  for (const crypto of without) {
    watched.requests.length = 0;
    await withCrypto(crypto, () => assert.rejects(connect(watched.url), { code: "no_randomness", message: /getRandomValues/ }));
    const server = await connect(watched.url);
    await withCrypto(crypto, () => assert.rejects(server.open("colpack"), { code: "no_randomness" }));
    const table = await server.open("colpack");
    const before = watched.requests.length;
    await withCrypto(crypto, () => assert.rejects(table.get("k1"), { code: "no_randomness" }));
    assert.equal(watched.requests.length, before);
    assert.equal((await table.get("k1")).text(), valueOf(1));
  }
});

test("all that is sent follows from it", async () => {
  // With equal "randomness", two runs differ only if there is a second source. Each call's bytes begin with `seed`.
  const sent = async (seed) => {
    let calls = 0;
    const getRandomValues = (array) => {
      calls += 1;
      for (let at = 0; at < array.length; at++) array[at] = seed + 31 * calls + 7 * at;
      return array;
    };
    watched.requests.length = 0;
    await withCrypto({ getRandomValues }, async () => {
      const server = await connect(watched.url, { storage: null });
      for (const name of ["colpack", "onion", "simple"]) {
        const table = await server.open(name);
        const found = await table.getMany(["k3", "absent"]);
        assert.deepEqual(found.map((value) => value && value.text()), [valueOf(3), null]);
      }
    });
    assert.ok(calls >= 6, "a fresh secret for each query");
    return watched.requests.map(({ method, path, body }) => `${method} ${path} ${createHash("sha256").update(body).digest("hex")}`);
  };
  for (const seed of [1, 2]) await sent(seed); // After this, the server has the evaluation keys of both seeds.
  const first = await sent(1);
  assert.deepEqual(await sent(1), first);
  const [own, other] = [first, await sent(2)].map((all) => all.filter((request) => !request.startsWith("GET")));
  assert.equal(own.length, other.length);
  own.forEach((request, at) => assert.notEqual(request, other[at]));
});

test("queries for one key have nothing in common", async () => {
  const table = await (await connect(watched.url)).open("colpack");
  watched.requests.length = 0;
  await table.get("k3");
  await table.get("k3");
  const [first, second] = watched.requests.map(({ body }) => body);
  assert.equal(first.length, second.length);
  const equal = first.filter((byte, at) => byte === second[at]).length;
  assert.ok(equal < first.length / 50, `${equal} of ${first.length} bytes are the same`);
});

test("the module can reach no other source", () => {
  const module = new WebAssembly.Module(readFileSync(`${packed}wasm/hush_bg.wasm`));
  const imported = WebAssembly.Module.imports(module).map(({ name }) => name);
  assert.equal(imported.filter((name) => /getRandomValues/.test(name)).length, 1);
  const others = imported.filter((name) => !name.includes("getRandomValues"));
  assert.deepEqual(others.filter((name) => /random|process|require|Math/i.test(name)), []);
  for (const file of ["index.js", "driver.js", "storage.js", "node.js", "wasm/hush.js"]) {
    assert.doesNotMatch(readFileSync(packed + file, "utf8"), /Math\.random|randomFillSync|randomBytes|msCrypto/, file);
  }
});

// This test must be the last: the module cannot be used afterwards.
test("randomness that ends midway ends the client, and nothing is sent", async () => {
  const server = await connect(watched.url);
  const table = await server.open("colpack");
  const before = watched.requests.length;
  const own = globalThis.crypto;
  const getRandomValues = (array) => {
    if (array.length > 1) throw new Error("no entropy");
    return own.getRandomValues(array);
  };
  await withCrypto({ getRandomValues }, () =>
    assert.rejects(table.get("k1"), { code: "client_failed", message: /randomness/ }),
  );
  await assert.rejects(table.get("k1"), { code: "client_failed" });
  assert.equal(watched.requests.length, before);
});
