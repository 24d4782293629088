/** A bar of a look-up's time, by phase. The colours show whose time a phase takes, the client's or the server's. */

import { entry, make } from "./dom.js";
import type { Phases } from "./messages.js";
import { time } from "./text.js";

const NAMES: Record<keyof Phases, string> = {
  descriptor: "the table's description",
  hint: "the hint, once",
  keys: "evaluation keys, once",
  prepare: "prepare queries",
  encrypt: "encrypt",
  network: "network and server",
  decode: "decrypt",
};

export function drawTimes(bar: HTMLElement, legend: HTMLElement, phases: Phases): void {
  const names = Object.keys(NAMES) as (keyof Phases)[]; // in the order of a look-up
  const taken = names.map((phase) => [phase, phases[phase]] as const).filter(([, seconds]) => seconds > 0);
  const total = taken.reduce((sum, [, seconds]) => sum + seconds, 0);
  const parts = taken.map(([phase, seconds]) => {
    const part = make("span");
    part.style.background = colour(phase);
    part.style.flex = `${seconds / total} 0 0`;
    return part;
  });
  bar.replaceChildren(...parts);
  const told = taken.map(([phase, seconds]) => `${NAMES[phase]} ${time(seconds)}`);
  bar.setAttribute("aria-label", `${time(total)} in all: ${told.join(", ")}`);
  const entries = taken.map(([phase], at) => entry(colour(phase), told[at]!));
  legend.replaceChildren(...entries, make("li", {}, `${time(total)} in all`));
}

function colour(phase: keyof Phases): string {
  return `var(--${phase})`;
}
