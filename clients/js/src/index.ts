import { setSource } from "./module.js";

// Bundlers that know this form take the file along; the others are told where it is.
setSource(() => new URL("./wasm/hush_bg.wasm", import.meta.url));

export * from "./client.js";
