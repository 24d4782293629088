/** Two look-ups of different keys, as the server sees them. */

import { row, the } from "./dom.js";
import { query } from "./lookup.js";
import type { LookUp } from "./messages.js";
import { alike, draw } from "./picture.js";
import { count } from "./text.js";

export function compare(first: LookUp, second: LookUp): void {
  const both = [first, second];
  const asked = both.map(query);
  asked.forEach((exchange, at) => {
    if (!exchange) return;
    const name = at === 0 ? "first" : "second";
    the(`${name}-caption`).textContent = draw(the(`${name}-picture`), exchange.sent, exchange.sentBytes);
  });
  const facts: [string, (found: LookUp) => string][] = [
    ["Requests", (found) => found.exchanges.map(({ method, path }) => `${method} ${path.split("/").at(-1)}`).join(", ")],
    ["Bytes sent", (found) => found.exchanges.map(({ sentBytes }) => count(sentBytes)).join(" + ")],
    ["Bytes received", (found) => found.exchanges.map(({ receivedBytes }) => count(receivedBytes)).join(" + ")],
  ];
  const told = facts.map(([name, of]) => [name, of(first), of(second)] as const);
  const rows = told.map(([name, one, other]) => row(name, [one, other]));
  const same = asked[0] && asked[1] ? alike(asked[0].sent, asked[1].sent) : "none";
  rows.push(row("Bytes that are the same in both", [same, "of random ones 0.39 %"]));
  the("differences").replaceChildren(...rows);
  the("compared").hidden = false;
  const different = told.filter(([, one, other]) => one !== other).map(([name]) => name.toLowerCase());
  const verdict = the("verdict");
  verdict.className = different.length === 0 ? "verdict" : "verdict error";
  verdict.textContent =
    different.length === 0
      ? `One is ${found(first)}, the other one ${found(second)}. The server saw the same requests, of the same lengths, with other noise in each.`
      : `These differ: ${different.join(", ")}. What is sent once, or a server that was busy, makes such a difference: compare again.`;
}

function found({ value }: LookUp): string {
  return value === null ? "not there" : "there";
}
