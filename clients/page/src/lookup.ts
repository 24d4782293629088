/** The view of a look-up: the value, and beside it what the server saw. */

import { make, the } from "./dom.js";
import type { Exchange, LookUp } from "./messages.js";
import { draw } from "./picture.js";
import { bytes, count } from "./text.js";
import { drawTimes } from "./times.js";
import { valueParts } from "./value.js";

/** Returns the successful request of a look-up that carried the query. */
export function query({ exchanges }: LookUp): Exchange | undefined {
  return exchanges.findLast(({ path, status }) => path.endsWith("/query") && status === 200);
}

/** Returns the purpose of a request in words. */
export function purpose({ method, path }: Exchange): string {
  if (path.endsWith("/query")) return "The query";
  if (path.includes("/keys/")) return method === "PUT" ? "Evaluation keys, uploaded once" : "Whether the server has the evaluation keys";
  if (path.includes("/blobs/")) return "The hint, downloaded once";
  return "The description of the table";
}

/** Shows a look-up. Returns its outcome in words. */
export function show(found: LookUp): string {
  const [outcome, parts] = valueOf(found);
  the("found").replaceChildren(...parts);
  // Parts that scroll must be reachable by keyboard.
  for (const part of parts) if (part.scrollHeight > part.clientHeight + 1) part.tabIndex = 0;
  const asked = query(found);
  if (asked) {
    const words = draw(the("picture"), asked.sent, asked.sentBytes);
    the("picture-caption").textContent = `All that the server gets of the key: ${words}.`;
  }
  the("seen").hidden = !asked;
  the("nothing-seen").hidden = true;
  the("requests").replaceChildren(...found.exchanges.map(request));
  drawTimes(the("bar"), the("phases"), found.phases);
  the("times").hidden = false;
  return outcome;
}

/** Removes the shown look-up from the page. */
export function clear(): void {
  for (const id of ["seen", "times"]) the(id).hidden = true;
  for (const id of ["found", "requests"]) the(id).replaceChildren();
  the("nothing-seen").hidden = false;
}

function valueOf({ value, hasSpaces, facts }: LookUp): [string, HTMLElement[]] {
  if (value === null) {
    const what = facts.byKey ? "This key is not in the table." : "There is no such record.";
    const spaces = hasSpaces ? " The key begins or ends with a space, which is a part of it." : "";
    return [what, [make("p", { className: "help" }, `The server saw the same as if it were.${spaces}`)]];
  }
  const { kind, parts } = valueParts(value, facts.fields !== null, facts.name);
  return [`Found: ${bytes(value.length)}${kind === "binary" ? " of binary data" : ""}`, parts];
}

function request(exchange: Exchange): HTMLLIElement {
  const { method, path, sentBytes, receivedBytes } = exchange;
  return make(
    "li",
    {},
    make("strong", {}, purpose(exchange)),
    make("code", {}, `${method} ${path}`),
    make("span", {}, `${count(sentBytes)} B sent, ${count(receivedBytes)} B received`),
    ...remark(exchange),
  );
}

/** Returns the reason for which a request was repeated, if it was refused. */
function remark({ status }: Exchange): HTMLElement[] {
  if (status < 300) return [];
  const reasons: Record<number, string> = {
    428: "the server no longer has this browser's evaluation keys: they are uploaded again, and the query is made anew",
    410: "the table has changed since it was opened: its new description is read, and the query is made anew",
    429: "the server has too many requests: asked again",
    503: "the server is busy: asked again",
  };
  return [make("em", {}, `${status}: ${reasons[status] ?? "the server refused it"}`)];
}
