/** The time of a look-up, by phase, as a bar. */

import { entry, make } from "./dom.js";
import type { Phases } from "./messages.js";
import { time } from "./text.js";

const NAMES: Record<keyof Phases, [string, string]> = {
  descriptor: ["the table's description", "#787878"],
  hint: ["the hint, once", "#cc79a7"],
  keys: ["evaluation keys, once", "#e69f00"],
  encrypt: ["encrypt", "#009e73"],
  network: ["network and server", "#d55e00"],
  decode: ["decrypt", "#0072b2"],
};

export function drawTimes(bar: HTMLElement, legend: HTMLElement, phases: Phases): void {
  const all = Object.entries(phases) as [keyof Phases, number][];
  const taken = all.filter(([, seconds]) => seconds > 0);
  const total = taken.reduce((sum, [, seconds]) => sum + seconds, 0);
  const parts = taken.map(([phase, seconds]) => {
    const part = make("span");
    part.style.background = NAMES[phase][1];
    part.style.flex = `${seconds / total} 0 0`;
    return part;
  });
  bar.replaceChildren(...parts);
  const told = taken.map(([phase, seconds]) => `${NAMES[phase][0]} ${time(seconds)}`);
  bar.setAttribute("aria-label", `${time(total)} in all: ${told.join(", ")}`);
  const entries = taken.map(([phase], at) => entry(NAMES[phase][1], told[at]!));
  legend.replaceChildren(...entries, make("li", {}, `${time(total)} in all`));
}
