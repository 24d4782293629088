#!/usr/bin/env node
// Whether the time of the npm package (target/npm, of `make npm`) tells what is looked up: Welch's t over two classes of look-ups,
// for encryption and for decoding, as crates/hush-client/tests/timing does for Rust. A planted leak must be found, and none in its
// control. Usage: timing.mjs HUSHDB [LOOKUPS]

import { argv, env, exit } from "node:process";

env.HUSHDB = argv[2] ?? env.HUSHDB;
const lookups = Number(argv[3] ?? 4000);
const { connect } = await import("../target/npm/node.js");
const { Scratch } = await import("../clients/js/test/harness.mjs");

const LIMIT = 4.5; // the largest |t| that is taken for chance
const RECORDS = 4096;
const FIRST = 100; // the first look-ups, which warm up and set the bounds
const BOUNDS = 12;

/** The number, the mean and the sum of squared differences of some times. */
class Moments {
  count = 0;
  mean = 0;
  squares = 0;

  push(time) {
    const difference = time - this.mean;
    this.mean += difference / ++this.count;
    this.squares += difference * (time - this.mean);
  }

  get variance() {
    return this.squares / (this.count - 1) / this.count;
  }
}

/** Returns the largest of Welch's t over the times below several bounds, and the mean times of the two classes. */
function compare(samples) {
  const first = samples.slice(0, FIRST).map(({ time }) => time).sort((a, b) => a - b);
  const bounds = Array.from({ length: BOUNDS - 1 }, (_, at) => first[Math.floor((1 - 0.5 ** ((8 * (at + 1)) / BOUNDS)) * FIRST)]);
  const results = [...bounds, Infinity].map((bound) => {
    const classes = [new Moments(), new Moments()];
    for (const { time, side } of samples.slice(FIRST)) if (time <= bound) classes[side].push(time);
    const [a, b] = classes;
    const t = (a.mean - b.mean) / Math.sqrt(a.variance + b.variance);
    return { t: a.count < 30 || b.count < 30 ? 0 : t, means: [a.mean, b.mean] };
  });
  return results.reduce((most, one) => (Math.abs(one.t) > Math.abs(most.t) ? one : most));
}

/** Looks up by one of two keys or positions, in random order. Returns the times of each phase, in microseconds. */
async function timed(work) {
  const phases = {};
  for (let at = 0; at < lookups + FIRST; at++) {
    const side = Math.random() < 0.5 ? 0 : 1;
    const spent = await work(side);
    for (const [phase, time] of Object.entries(spent)) (phases[phase] ??= []).push({ time: 1e6 * time, side });
  }
  return phases;
}

/** Returns the work of a look-up, with the times that the package measures. */
function lookingUp(table, wanted) {
  return async (side) => {
    const before = { ...table.stats.seconds };
    await table.get(wanted(side));
    const { encrypt, decode } = table.stats.seconds;
    return { encrypt: encrypt - before.encrypt, decode: decode - before.decode };
  };
}

/** Compares the bytes of two texts, up to the first that differs if `stops`. */
function comparing(stops) {
  const length = 1 << 16;
  const texts = [0, 1].map((side) => Uint8Array.from({ length }, (_, at) => (at === length >> (2 * side) ? 1 : 0)));
  const zeros = new Uint8Array(length);
  return (side) => {
    const begin = performance.now();
    let difference = 0;
    for (let at = 0; at < length && !(stops && difference); at++) difference |= texts[side][at] ^ zeros[at];
    globalThis.sink = difference;
    return { compare: (performance.now() - begin) / 1000 };
  };
}

let failed = false;
async function check(name, work, expected) {
  const again = [await timed(work), await timed(work)];
  for (const phase of Object.keys(again[0])) {
    const [one, two] = again.map((phases) => compare(phases[phase]));
    const tells = Math.abs(one.t) > LIMIT && Math.abs(two.t) > LIMIT && one.t > 0 === two.t > 0;
    const right = expected[phase] === undefined || tells === expected[phase];
    failed ||= !right;
    const means = one.means.map((mean) => mean.toFixed(2)).join(" and ");
    const told = expected[phase] === undefined ? " (told)" : "";
    console.log(`${right ? "ok  " : "FAIL"} ${name}, ${phase}: t ${one.t.toFixed(1)}, again ${two.t.toFixed(1)}; ${means} us${told}`);
  }
}

await check("planted: a comparison stops", comparing(true), { compare: true });
await check("control: a comparison reads all", comparing(false), { compare: false });
const scratch = new Scratch();
try {
  const rows = Array.from({ length: RECORDS }, (_, i) => ({ k: `k${String(i).padStart(6, "0")}`, v: `value ${i}`.padEnd(64, "x") }));
  scratch.build("keys", rows, "--key", "k", "--value", "v", "--protocol", "colpack");
  scratch.build("positions", rows, "--value", "v", "--protocol", "colpack");
  const url = await scratch.serve(["keys", "positions"]);
  const client = await connect(url);
  const keys = await client.open("keys");
  const positions = await client.open("positions");
  const key = (side) => (side === 0 ? "k000001" : "k999999");
  const even = { encrypt: false, decode: false };
  // Which of the two was found is known to whoever asked, when the requests of the call are out.
  await check("a key that is there or absent", lookingUp(keys, key), { encrypt: false });
  await check("the first position or the last", lookingUp(positions, (side) => (side === 0 ? 0 : RECORDS - 1)), even);
} finally {
  await scratch.stop();
}
exit(failed ? 1 : 0);
