import init, * as exports from "./wasm/hush.js";
import type { InitInput } from "./wasm/hush.js";
import { HushError } from "./error.js";
import type { FetchResponse, Url, WasmModule } from "./platform.js";

/** A source of the WebAssembly module for `initialize`: the module, its bytes, or its URL. */
export type Source = string | Url | FetchResponse | Uint8Array | ArrayBuffer | WasmModule;

/** @internal */
export type Exports = typeof exports;

let source: (() => Source | Promise<Source>) | undefined;
let loaded: Promise<Exports> | undefined;

/** @internal Sets the source that is used if the program names none. */
export function setSource(from: () => Source | Promise<Source>): void {
  source = from;
}

/**
 * Loads the WebAssembly module. Without this call, the first `connect` loads it from the default source. Programs call this if the
 * module is in a bundle, or at another URL. Rejects with code `wasm` if the module cannot be loaded.
 */
export async function initialize(from?: Source): Promise<void> {
  await module(from);
}

/** @internal Returns the loaded module, and loads it at the first call. A failed load is not cached. */
export function module(from?: Source): Promise<Exports> {
  loaded ??= load(from).catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(from: Source | undefined): Promise<Exports> {
  try {
    await init({ module_or_path: (from ?? (await source!())) as InitInput });
    return exports;
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    const message =
      `the WebAssembly module cannot be loaded (${said}): it needs SIMD (Chrome 91, Firefox 89, Safari 16.4, Node 16.4), ` +
      "a Content-Security-Policy with 'wasm-unsafe-eval' if there is one, and hush_bg.wasm where initialize(url) says";
    throw new HushError("wasm", message, { cause });
  }
}
