#!/usr/bin/env node
// Measures the time that clients compute for a look-up: the npm package (target/npm, of `make npm`) beside the Rust client, in one run
// with one server. The table has the default protocol. Every answer is checked. Usage: bench_client.mjs HUSHDB [RECORDS]

import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { argv, env } from "node:process";

env.HUSHDB = argv[2] ?? env.HUSHDB;
const records = Number(argv[3] ?? 1_000_000);
const { connect } = await import("../target/npm/node.js");
const { Scratch } = await import("../clients/js/test/harness.mjs");

const MANY = 64; // look-ups in one request
const ROUNDS = 5;
const valueOf = (i) => `value ${i} `.padEnd(64, "x");
const keys = Array.from({ length: MANY }, (_, i) => `k${i * 97}`);
const expected = keys.map((_, i) => valueOf(i * 97));

function median(times) {
  return times.sort((a, b) => a - b)[times.length >> 1];
}

/** Returns the milliseconds of the first look-up, and the median milliseconds of one look-up among many. */
function figures(first, many) {
  const each = (phase) => (1000 * median(many.map((seconds) => seconds[phase]))) / MANY;
  return { first: 1000 * (first.encrypt + first.decode), encrypt: each("encrypt"), decode: each("decode") };
}

const scratch = new Scratch();
try {
  const rows = Array.from({ length: records }, (_, i) => ({ k: `k${i}`, v: valueOf(i) }));
  scratch.build("table", rows, "--key", "k", "--value", "v", "--protocol", "colpack");
  const url = await scratch.serve(["table"]);

  const table = await (await connect(url)).open();
  const spent = async (asked, wanted) => {
    const before = table.stats.seconds;
    const found = (await table.getMany(asked)).map((value) => value?.text());
    if (String(found) !== String(wanted)) throw new Error("a wrong answer");
    const { encrypt, decode } = table.stats.seconds;
    return { encrypt: encrypt - before.encrypt, decode: decode - before.decode };
  };
  const first = await spent(["k1"], [valueOf(1)]);
  const many = [];
  for (let round = 0; round < ROUNDS; round++) many.push(await spent(keys, expected));
  const wasm = figures(first, many);

  const native = (asked, wanted) => {
    // A page has one thread.
    const options = { env: { ...scratch.env, RAYON_NUM_THREADS: "1" }, encoding: "utf8" };
    const said = execFileSync(env.HUSHDB, ["get", url, "--json", "--stats", ...asked], options);
    const lines = said.trim().split("\n").map((line) => JSON.parse(line));
    const { stats } = lines.pop();
    if (String(lines.map(({ value }) => value)) !== String(wanted)) throw new Error("a wrong answer");
    return stats.seconds;
  };
  const rounds = Array.from({ length: ROUNDS }, () => native(keys, expected));
  const rust = figures(native(["k1"], [valueOf(1)]), rounds);

  const show = (name, { encrypt, decode, first }) => {
    const each = `${encrypt.toFixed(3)} ms to encrypt, ${decode.toFixed(3)} ms to decode`;
    console.log(`${name.padEnd(14)} ${each}; the first look-up ${first.toFixed(1)} ms`);
  };
  const bytes = Math.round(table.stats.bytesUp / table.stats.queries);
  console.log(`${records} records, ${table.facts.protocol}, queries of ${bytes} bytes`);
  console.log(`${cpus()[0].model}, Node ${process.versions.node}`);
  show("wasm, Node", wasm);
  show("Rust", rust);
  const ratio = (wasm.encrypt + wasm.decode) / (rust.encrypt + rust.decode);
  const of = (phase) => `${phase} ${(wasm[phase] / rust[phase]).toFixed(2)}`;
  console.log(`ratio          ${ratio.toFixed(2)} (${of("encrypt")}, ${of("decode")})`);
} finally {
  await scratch.stop();
}
