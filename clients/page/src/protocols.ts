/** The colours of protocols, which are the same on the whole page and in the pictures of `hushdb plan --plot`. */

import { make } from "./dom.js";

/** The colour of each protocol. Colour-blind people can tell the colours apart (after Okabe and Ito, and Tol). */
const COLOURS: Record<string, string> = {
  colpack: "#0072b2",
  "colpack-s": "#56b4e9",
  hybrid: "#d55e00",
  onion: "#009e73",
  tfhe: "#cc79a7",
  "tfhe-privks": "#44aa99",
  simple: "#e69f00",
  frodo: "#787878",
  double: "#996633",
  "exppack-s": "#643ca0",
  "exppack-d": "#882255",
  "double-pack": "#bbcc33",
  download: "#cc3311",
};

export function colourOf(protocol: string): string {
  return COLOURS[protocol] ?? "#000000";
}

/** Returns the name of a protocol after a mark in its colour. */
export function named(protocol: string, text = protocol): HTMLSpanElement {
  const mark = make("i", { className: "mark" });
  mark.style.background = colourOf(protocol);
  return make("span", { className: "named" }, mark, text);
}
