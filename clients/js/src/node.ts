import { webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { versions } from "node:process";
import { setSource } from "./module.js";

// Node 18 has the standard `crypto`, but exposes it globally only with a flag.
if (versions.node.startsWith("18.") && globalThis.crypto === undefined) {
  Object.defineProperty(globalThis, "crypto", { value: webcrypto, configurable: true, enumerable: true, writable: true });
}

// Node's `fetch` cannot read files.
setSource(async () => new Uint8Array(await readFile(new URL("./wasm/hush_bg.wasm", import.meta.url))));

export * from "./client.js";
