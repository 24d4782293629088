import { setSource } from "./module.js";
import packed from "./wasm/inline.js";

// The module is inside the script, for bundlers that include no other files, and for programs of one file.
setSource(async () => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
});

export * from "./client.js";
