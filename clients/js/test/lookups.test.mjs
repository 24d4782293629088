// Look-ups in tables of every kind, and their costs, against a real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, HushError, Value } from "../../../target/npm/node.js";
import { MemoryStorage, Scratch, proxy, rows, valueOf } from "./harness.mjs";

const COUNT = 600;
const scratch = new Scratch();
const tiers = rows(COUNT).map((row, i) => (i % 50 === 0 ? { ...row, v: "long ".repeat(300) + i } : row));
let url;

before(async () => {
  const by = ["--key", "k", "--value", "v"];
  const names = [
    scratch.build("colpack", rows(COUNT), ...by, "--protocol", "colpack"),
    scratch.build("simple", rows(COUNT), ...by, "--protocol", "simple"),
    scratch.build("onion", rows(COUNT), ...by, "--protocol", "onion"),
    scratch.build("tfhe", rows(COUNT), ...by, "--protocol", "tfhe"),
    scratch.build("hybrid", rows(COUNT), ...by, "--protocol", "hybrid"),
    scratch.build("tiers", tiers, ...by, "--protocol", "colpack", "--tiers", "40,1600"),
    scratch.build("position", rows(COUNT), "--value", "v"),
    scratch.build("numbers", [-7, 0, 2 ** 40].map((k) => ({ k, v: `of ${k}` })), ...by),
    scratch.build("two", [{ k: "a", n: 7, v: "of a 7" }, { k: "b", n: -1, v: "of b -1" }], "--key", "k", "--key", "n", "--value", "v"),
    scratch.build("words", rows(COUNT), ...by, "--sorted", "bytes"),
    scratch.build("networks", [{ net: "10.0.0.0/8", who: "a" }, { net: "10.1.0.0/16", who: "b" }], "--range", "net", "--sorted", "ip"),
    scratch.build("columns", [{ k: "a", n: 7, t: "text", u: null }, { k: "b", n: -1.5, t: "", u: [1, 2] }], "--key", "k"),
  ];
  url = await scratch.serve(names);
});
after(() => scratch.stop());

const text = (value) => value && value.text();

for (const name of ["colpack", "simple", "onion", "tfhe"]) {
  test(`by key, ${name}`, async () => {
    const server = await connect(url);
    const table = await server.open(name);
    assert.equal(table.name, name);
    assert.deepEqual([table.facts.protocol, table.facts.byKey, table.facts.records], [name, true, COUNT]);
    assert.equal(table.facts.linkable, ["onion", "tfhe"].includes(name));
    assert.equal(text(await table.get("k33")), valueOf(33));
    assert.equal(text(await table.get(new TextEncoder().encode("k34"))), valueOf(34));
    assert.equal(await table.get("absent"), null);
    const many = Array.from({ length: 150 }, (_, i) => `k${i * 4}`);
    const found = await table.getMany([...many, "absent", "k0", ""]);
    assert.deepEqual(found.map(text), [...many.map((_, i) => valueOf(i * 4)), null, "", null]);
    // Requests have 64 look-ups, and follow the upload of evaluation keys, as in the Rust client.
    assert.equal(table.stats.queries, 3 + 153);
    assert.equal(table.stats.answers, 3 + 153);
    table.close();
    await assert.rejects(table.get("k1"), { code: "closed" });
    server.close();
  });
}

test("rows of sorted tables are found", async () => {
  const server = await connect(url);
  const words = await server.open("words");
  assert.deepEqual([words.facts.byKey, words.facts.records], [true, COUNT]);
  assert.equal(text(await words.get("k33")), valueOf(33));
  assert.equal(await words.get("k33x"), null);
  assert.deepEqual((await words.get("k33x", { rows: "at-or-below" })).fields(), { k: "k339", v: valueOf(339) });
  const [below, above] = await words.getMany(["a", "k9999"], { rows: "at-or-below" });
  assert.deepEqual([below, above.fields()], [null, { k: "k99", v: valueOf(99) }]);
  const prefix = (await words.get("k59", { rows: "prefix" })).fields();
  assert.deepEqual([prefix.rows.length, prefix.more], [11, false]);
  const networks = await server.open("networks");
  assert.deepEqual((await networks.get("10.1.2.3", { rows: "in-range" })).fields(), { net: "10.1.0.0/16", who: "b" });
  assert.equal(text(await networks.get("10.2.0.0")), "a");
  await assert.rejects(networks.get("10.2", { rows: "in-range" }), { code: "bad_key" });
  await assert.rejects(words.get("k1", { rows: "in-range" }), { code: "wrong_lookup" });
  await assert.rejects(words.get("k1", { rows: "near" }), { code: "options" });
  server.close();
});

test("queries are prepared", async () => {
  const server = await connect(url);
  const table = await server.open("simple");
  assert.equal(await table.prepare(3), 3);
  assert.deepEqual((await table.getMany(["k3", "absent"])).map(text), [valueOf(3), null]);
  assert.deepEqual([table.stats.prepared, table.stats.queries], [1, 2]);
  assert.ok(table.stats.seconds.prepare > 0);
  await assert.rejects(table.prepare(-1), { code: "options" });
  const other = await server.open("colpack");
  await assert.rejects(other.prepare(1), { code: "options", message: /queries of colpack cannot be prepared/ });
  assert.equal(text(await other.get("k33")), valueOf(33));
});

test("by key, with answers packed by evaluation keys", async () => {
  const table = await (await connect(url)).open("hybrid");
  assert.deepEqual((await table.getMany(["k3", "absent"])).map(text), [valueOf(3), null]);
  assert.ok(table.stats.keyBytesUp > 1_000_000);
});

test("values are bytes, as they are in the table", async () => {
  const table = await (await connect(url)).open("colpack");
  const value = await table.get("k40");
  assert.ok(value instanceof Value && value instanceof Uint8Array);
  assert.deepEqual(new Uint8Array(value), new TextEncoder().encode(valueOf(40)));
  assert.equal(value.fields(), null);
  assert.ok(!(value.slice(1) instanceof Value));
  assert.equal(await table.get("k41").then(text), "");
});

test("tables with tiers", async () => {
  const table = await (await connect(url)).open("tiers");
  const asked = ["k0", "k1", "k50", "k39", "k550", "absent"];
  const expected = [...asked.slice(0, -1).map((key) => tiers[Number(key.slice(1))].v), null];
  assert.deepEqual((await table.getMany(asked)).map(text), expected);
});

test("by position", async () => {
  const table = await (await connect(url)).open("position");
  assert.equal(table.facts.byKey, false);
  assert.equal(text(await table.get(5)), valueOf(5));
  assert.deepEqual((await table.getMany([0n, COUNT - 1])).map(text), [valueOf(0), valueOf(COUNT - 1)]);
  await assert.rejects(table.get(COUNT), { code: "index_out_of_range", message: /0 to 599/ });
  await assert.rejects(table.get(2n ** 64n - 1n), { code: "index_out_of_range" });
  await assert.rejects(table.get("k1"), { code: "wrong_lookup", message: /by position.*number/ });
  for (const bad of [-1, 1.5, 2 ** 53, 2n ** 64n, -1n, null, undefined, {}, true]) {
    await assert.rejects(table.get(bad), { code: "bad_key" }, String(bad));
  }
  assert.equal(text(await table.get([6])), valueOf(6));
  await assert.rejects(table.get([1, 2]), { code: "wrong_lookup" });
});

test("by integers, and by several columns", async () => {
  const server = await connect(url);
  const numbers = await server.open("numbers");
  const asked = [-7, 0n, 2 ** 40, "-7", [2n ** 40n], 1, 2n ** 100n];
  const all = ["of -7", "of 0", "of 1099511627776", "of -7", "of 1099511627776", null, null];
  assert.deepEqual((await numbers.getMany(asked)).map(text), all);
  await assert.rejects(numbers.get("seven"), { code: "bad_key", message: /column k is of type int64.*whole number/ });
  await assert.rejects(numbers.get([1, 2]), { code: "bad_key", message: /2 columns was given.*k \(int64\)/ });
  const two = await server.open("two");
  const joined = `a${String.fromCharCode(0x1f)}7`;
  const found = await two.getMany([["a", 7], [new TextEncoder().encode("b"), -1n], ["a", "7"], joined, ["b", 7]]);
  assert.deepEqual(found.map(text), ["of a 7", "of b -1", "of a 7", "of a 7", null]);
  for (const [bad, said] of [
    ["a", /1 column was given, and the table's key is k \(string\), n \(int64\)/],
    [["a"], /1 column was given/],
    [[joined, 7], /without the byte 0x1f/],
    [["a", 7, 7], /3 columns/],
    [[], /0 columns/],
    [[7, 7], /column k is of type string/],
    [["a", "b"], /column n is of type int64/],
    [["a", 0.5], /whole number/],
    [["a", ["b"]], /array of these/],
    [["a", 2n ** 127n], /2\^127/],
  ]) {
    await assert.rejects(two.get(bad), { code: "bad_key", message: said }, String(bad));
  }
});

test("values of several columns", async () => {
  const table = await (await connect(url)).open("columns");
  assert.deepEqual(table.facts.fields, ["n", "t", "u"]);
  assert.deepEqual((await table.getMany(["a", "b"])).map((value) => value.fields()), [
    { n: 7, t: "text", u: null },
    { n: -1.5, t: "", u: [1, 2] },
  ]);
  assert.equal(text(await table.get("b")), '{"n":-1.5,"t":"","u":[1,2]}');
  assert.equal(await table.get("c"), null);
});

test("keys that no table has are refused before anything is sent", async () => {
  const table = await (await connect(url)).open("colpack");
  await assert.rejects(table.get("x".repeat(5000)), { code: "key_too_long" });
  await assert.rejects(table.get(7), { code: "bad_key", message: /column k is of type string.*text/ });
  await assert.rejects(table.get("half \ud800"), { code: "bad_key" });
  assert.equal(table.stats.queries, 0);
  assert.equal(text(await table.get("k1")), valueOf(1));
});

test("calls that overlap are answered each", async () => {
  const table = await (await connect(url)).open("colpack");
  const found = await Promise.all(["k1", "absent", "k3", "k4"].map((key) => table.get(key)));
  assert.deepEqual(found.map(text), [valueOf(1), null, valueOf(3), valueOf(4)]);
});

test("requests are those of the Rust client, whatever is asked", async () => {
  const watched = await proxy(url);
  try {
    for (const name of ["colpack", "onion", "simple"]) {
      const sent = async (key) => {
        watched.requests.length = 0;
        const table = await (await connect(watched.url)).open(name);
        await table.getMany([key, "k2"]);
        return watched.requests.map(({ method, path, body, received }) => {
          const hash = /^\/v1\/keys\//.test(path) ? "/v1/keys/" : path;
          return [method, hash, body.length, received];
        });
      };
      const expected = await sent("k1");
      for (const key of ["absent", "", "x".repeat(4096)]) assert.deepEqual(await sent(key), expected, name);
      watched.requests.length = 0;
      const stats = JSON.parse(
        await inOtherProcess(watched.url, "--table", name, "k1", "k2").then((lines) => lines.trim().split("\n").at(-1)),
      ).stats;
      const rust = watched.requests.map(({ method, path, body, received }) => [
        method, /^\/v1\/keys\//.test(path) ? "/v1/keys/" : path, body.length, received,
      ]);
      assert.deepEqual(expected, rust, name);
      const table = await (await connect(watched.url)).open(name);
      await table.getMany(["k1", "k2"]);
      assert.equal(table.stats.bytesUp, stats.bytes_up, name);
      assert.equal(table.stats.bytesDown, stats.bytes_down, name);
    }
  } finally {
    await watched.close();
  }
});

/** Runs `hushdb get` without blocking this process, which runs the proxy. */
async function inOtherProcess(at, ...args) {
  const { execFile } = await import("node:child_process");
  const { promisify } = await import("node:util");
  const program = process.env.HUSHDB ?? new URL("../../../target/debug/hushdb", import.meta.url).pathname;
  const asked = ["get", at, "--json", "--stats", "--no-cache", ...args];
  const { stdout } = await promisify(execFile)(program, asked, { env: scratch.env });
  return stdout;
}

test("hints are kept, shared and checked", async () => {
  const storage = new MemoryStorage();
  const down = async (kept) => (await (await connect(url, { storage: kept })).open("simple")).stats.setupBytesDown;
  const first = await down(storage);
  assert.equal(storage.hints.size, 1);
  const [[hash, bytes]] = storage.hints;
  assert.equal(first - (await down(storage)), bytes.length);
  // A damaged hint is noticed, deleted, downloaded and stored anew.
  storage.hints.set(hash, bytes.map((byte, at) => (at === 9 ? byte ^ 1 : byte)));
  assert.equal(await down(storage), first);
  assert.deepEqual(storage.hints.get(hash), bytes);
  assert.equal(storage.calls.filter((call) => call === "forgetHint").length, 1);
  // Without a storage, the tables of one server object share the hint.
  const server = await connect(url, { storage: null });
  const table = await server.open("simple");
  assert.ok((await server.open("simple")).stats.setupBytesDown < table.stats.setupBytesDown - bytes.length / 2);
});

test("evaluation keys are uploaded once", async () => {
  const storage = new MemoryStorage();
  const uploaded = async (server) => {
    const table = await server.open("onion");
    assert.equal(text(await table.get("k9")), valueOf(9));
    return table.stats.keyBytesUp;
  };
  assert.ok((await uploaded(await connect(url, { storage }))) > 100_000);
  assert.equal(await uploaded(await connect(url, { storage })), 0);
  // Two clients that start together with an empty storage use the same keys.
  const fresh = new MemoryStorage();
  await Promise.all([connect(url, { storage: fresh }), connect(url, { storage: fresh })].map((server) => server.then(uploaded)));
  assert.equal(fresh.seeds.size, 1);
  assert.equal(await uploaded(await connect(url, { storage: fresh })), 0);
  // Damaged keys are replaced, and so are the keys of another server.
  const [[name, kept]] = storage.seeds;
  storage.seeds.set(name, kept.map((byte, at) => (at === 20 ? byte ^ 1 : byte)));
  assert.ok((await uploaded(await connect(url, { storage }))) > 0);
  assert.notDeepEqual(storage.seeds.get(name), kept);
  // Without a storage, keys are lost with the server object.
  const server = await connect(url, { storage: null });
  assert.ok((await uploaded(server)) > 0);
  assert.equal(await uploaded(server), 0);
});

test("evaluation keys serve so many look-ups, of all tables and processes", async () => {
  const storage = new MemoryStorage();
  const uploads = async (lookupsPerKey, ...counts) => {
    const table = await (await connect(url, { storage, lookupsPerKey })).open("onion");
    for (const count of counts) {
      const keys = Array.from({ length: count }, (_, i) => `k${i}`);
      assert.deepEqual((await table.getMany(keys)).map(text), keys.map((_, i) => valueOf(i)));
    }
    return table.stats.keyBytesUp;
  };
  const once = await uploads(8, 3);
  assert.ok(once > 100_000);
  assert.equal(await uploads(8, 4, 1), 0);
  assert.equal(await uploads(8, 1), once);
  assert.equal(await uploads(8, 20), 3 * once, "requests are no longer than that");
  // Look-ups in two tables at once share one count.
  const server = await connect(url, { storage: new MemoryStorage(), lookupsPerKey: 6 });
  const tables = await Promise.all([server.open("onion"), server.open("onion")]);
  await Promise.all(tables.flatMap((table) => Array.from({ length: 6 }, () => table.get("k1"))));
  const all = tables.reduce((sum, table) => sum + table.stats.keyBytesUp, 0);
  assert.ok(all >= 2 * once, `${all} bytes`);
});

test("old keys are replaced", async () => {
  const storage = new MemoryStorage();
  const server = () => connect(url, { storage });
  const seed = async (at) => {
    await (await (await at).open("onion")).get("k1");
    return Buffer.from([...storage.seeds.values()][0].slice(24, 56)).toString("hex");
  };
  const day = 24 * 3600 * 1000;
  const { now } = Date;
  try {
    const first = await seed(server());
    Date.now = () => now() + 29 * day;
    assert.equal(await seed(server()), first);
    Date.now = () => now() + 31 * day;
    assert.notEqual(await seed(server()), first);
  } finally {
    Date.now = now;
  }
});

test("a storage that fails is told of, and look-ups go on", async () => {
  const told = [];
  const broken = async () => {
    throw new Error("the disk is full of eels");
  };
  const storage = { hint: broken, keepHint: broken, forgetHint: broken, seed: broken };
  const server = await connect(url, { storage, onProgress: (progress) => told.push(progress) });
  for (const name of ["simple", "onion"]) assert.equal(text(await (await server.open(name)).get("k5")), valueOf(5));
  assert.ok(told.some(({ kind, reason }) => kind === "not_kept" && /eels/.test(reason)));
});

test("progress is told", async () => {
  const told = [];
  const server = await connect(url, { onProgress: (progress) => told.push(progress) });
  await server.open("simple");
  const kinds = told.map(({ kind }) => kind);
  assert.deepEqual([kinds[0], kinds.at(-1)], ["hint_start", "hint_end"]);
  assert.equal(told.at(-2).present, told[0].bytes);
  await (await server.open("onion")).get("k1");
  assert.ok(told.some(({ kind, bytes }) => kind === "keys_upload" && bytes > 100_000));
});

test("the list of tables, and which is opened", async () => {
  const server = await connect(new URL(url));
  assert.deepEqual(server.tables.map(({ name, state }) => `${name} ${state}`).sort(), [
    "colpack resident", "columns resident", "hybrid resident", "networks resident", "numbers resident", "onion resident",
    "position resident", "simple resident", "tfhe resident", "tiers resident", "two resident", "words resident",
  ]);
  await assert.rejects(server.open(), { code: "choose_table", message: /open\(name\).*colpack/ });
  await assert.rejects(server.open("nothing"), (error) => error instanceof HushError && error.code === "unknown_table");
  server.close();
  await assert.rejects(server.open("colpack"), { code: "closed" });
});
