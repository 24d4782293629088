import { setSource } from "./module.js";

// Bundlers that know this form include the file. Programs with another bundler call `initialize` with its URL.
setSource(() => new URL("./wasm/hush_bg.wasm", import.meta.url));

export * from "./client.js";
