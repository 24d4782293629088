/** The colours of protocols: the same ones wherever a protocol is shown, and in the pictures of `hushdb plan --plot`. */

import { make } from "./dom.js";

/** Colours that people who tell few colours apart can tell apart as well (after Okabe and Ito, and Tol). */
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

/** Returns the name of a protocol behind a mark of its colour. */
export function named(protocol: string, text = protocol): HTMLSpanElement {
  const mark = make("i", { className: "mark" });
  mark.style.background = colourOf(protocol);
  return make("span", { className: "named" }, mark, text);
}
