/** A look-up: the value, and beside it what the server saw. */

import { make, row, the } from "./dom.js";
import type { Exchange, LookUp } from "./messages.js";
import { draw } from "./picture.js";
import { bytes, count, shown } from "./text.js";
import { drawTimes } from "./times.js";

/** Bytes of a value that are shown. */
const MOST_SHOWN = 1 << 16;

/** The request with the query, of those of a look-up. */
export function query({ exchanges }: LookUp): Exchange | undefined {
  return exchanges.findLast(({ path, status }) => path.endsWith("/query") && status === 200);
}

export function show(found: LookUp): void {
  const parts = value(found);
  the("found").replaceChildren(...parts);
  // What scrolls is to be reached by keyboard.
  for (const part of parts) if (part.scrollHeight > part.clientHeight + 1) part.tabIndex = 0;
  const asked = query(found);
  if (asked) {
    const words = draw(the("picture"), asked.sent, asked.sentBytes);
    the("picture-caption").textContent = `All that the server gets of the key: ${words}.`;
  }
  the("seen").hidden = !asked;
  the("requests").replaceChildren(requests(found.exchanges));
  drawTimes(the("bar"), the("phases"), found.phases);
  the("times").hidden = false;
}

function value({ value, fields, facts }: LookUp): HTMLElement[] {
  if (value === null) {
    const what = facts.by === "key" ? "This key is not in the table." : "There is no such record.";
    return [make("h4", {}, what), make("p", { className: "help" }, "The server saw the same as if it were.")];
  }
  const title = make("h4", {}, `Found: ${bytes(value.length)}`);
  if (fields) {
    const list = make("dl", { className: "fields" });
    for (const [name, of] of Object.entries(fields)) {
      list.append(make("dt", {}, name), make("dd", {}, typeof of === "string" ? of : JSON.stringify(of)));
    }
    return [title, list];
  }
  const more = value.length > MOST_SHOWN ? `\n… and ${bytes(value.length - MOST_SHOWN)} more` : "";
  return [title, make("pre", {}, shown(value.subarray(0, MOST_SHOWN)) + more)];
}

/** What went to the server, a request a row. */
function requests(exchanges: Exchange[]): HTMLTableElement {
  const head = ["Request", "Sent", "Received"].map((name, at) =>
    make("th", { scope: "col", className: at === 0 ? "" : "number" }, name),
  );
  const rows = exchanges.map(({ method, path, sentBytes, receivedBytes }) => {
    const name = make("code", {}, `${method} ${path}`);
    return row(name, [`${count(sentBytes)} B`, `${count(receivedBytes)} B`]);
  });
  const caption = make("caption", { className: "hidden" }, "Requests of the look-up");
  return make("table", {}, caption, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}
