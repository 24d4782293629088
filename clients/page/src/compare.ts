/** A comparison of two look-ups of different keys, as the server sees them. */

import { row, the } from "./dom.js";
import { purpose, query } from "./lookup.js";
import type { LookUp } from "./messages.js";
import { alike, draw } from "./picture.js";
import { count } from "./text.js";

/** Shows two look-ups side by side. Returns the outcome in words. */
export function compare(first: LookUp, second: LookUp): string {
  const both = [first, second];
  const asked = both.map(query);
  asked.forEach((exchange, at) => {
    if (!exchange) return;
    const name = at === 0 ? "first" : "second";
    the(`${name}-caption`).textContent = draw(the(`${name}-picture`), exchange.sent, exchange.sentBytes);
  });
  const facts: [string, (found: LookUp) => string][] = [
    ["Requests", (found) => found.exchanges.map(purpose).join(", then: ")],
    ["Bytes sent", (found) => found.exchanges.map(({ sentBytes }) => count(sentBytes)).join(" + ")],
    ["Bytes received", (found) => found.exchanges.map(({ receivedBytes }) => count(receivedBytes)).join(" + ")],
  ];
  const told = facts.map(([name, of]) => [name, of(first), of(second)] as const);
  const rows = told.map(([name, one, other]) => row(name, [one, other]));
  const same = asked[0] && asked[1] ? alike(asked[0].sent, asked[1].sent) : "none";
  const alikeRow = row("Bytes that are the same in both", [`${same} (random bytes: 0.39 %)`]);
  alikeRow.cells[1]!.colSpan = 2;
  rows.push(alikeRow);
  the("differences").replaceChildren(...rows);
  the("compared").hidden = false;
  const different = told.filter(([, one, other]) => one !== other).map(([name]) => name.toLowerCase());
  the("verdict").classList.toggle("error", different.length > 0);
  return different.length === 0
    ? `The first is ${found(first)}, the second is ${found(second)}. The server saw the same requests, of the same lengths, with other noise in each.${linked(first)}`
    : `These differ: ${different.join(", ")}. What is sent once, or a server that was busy, makes such a difference: compare again.`;
}

function linked({ facts }: LookUp): string {
  return facts.linkable ? " Both name the same evaluation keys, so it can tell that they come from the same client." : "";
}

function found({ value }: LookUp): string {
  return value === null ? "not in the table" : "in the table";
}
