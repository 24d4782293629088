/** The page: the list of tables, and look-ups in the chosen table. */

import { Client, ClientError } from "./client.js";
import type { Progress, TableInfo } from "./client/index.js";
import { compare } from "./compare.js";
import { make, the } from "./dom.js";
import { clear, show } from "./lookup.js";
import { LOOKUPS_PER_KEY, type LookUp, type Opened } from "./messages.js";
import { showPlan } from "./plot.js";
import { named } from "./protocols.js";
import { bytes, count } from "./text.js";

const OF_A_TABLE = ["lookup", "compare", "plan"];

const client = new Client(tell);
const tables = the<HTMLSelectElement>("table");
let token: string | undefined;
let by: "key" | "position" = "key";

function say(text: string, isError = false): void {
  const state = the("state");
  state.textContent = text;
  state.className = isError ? "notice error" : "notice";
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isOfToken(error: unknown): boolean {
  return error instanceof ClientError && error.kind === "NotAllowed";
}

/** Shows the form for a token, with the reason why the last one was rejected. */
function askForToken(wrong: string): void {
  the("token-form").hidden = false;
  say(wrong, true);
  const input = the<HTMLInputElement>("token");
  input.focus();
  input.select();
}

function tell(progress: Progress): void {
  const bar = the<HTMLProgressElement>("progress");
  if (progress.kind === "hint_start") {
    say(`Downloading the hint, which clients of this protocol need once: ${bytes(progress.bytes)}…`);
    Object.assign(bar, { hidden: false, max: progress.bytes, value: progress.present });
  } else if (progress.kind === "hint_progress") bar.value = progress.present;
  else if (progress.kind === "hint_end") bar.hidden = true;
  else if (progress.kind === "keys_upload") say(`Uploading evaluation keys, once: ${bytes(progress.bytes)}…`);
  else say(progress.kind === "retry" ? `${progress.reason}; asking again…` : progress.reason);
}

async function connect(): Promise<void> {
  try {
    const all = await client.connect(token);
    the("token-form").hidden = true;
    list(all);
    if (tables.value) await open(tables.value);
  } catch (error) {
    // A text that cannot be a token is refused before the server is asked.
    if (isOfToken(error) || token !== undefined) askForToken(token === undefined ? "" : reason(error));
    else say(reason(error), true);
  }
}

function list(all: readonly TableInfo[]): void {
  const options = all.map(({ name, state }) =>
    make("option", { value: name, disabled: state === "failed" }, state === "resident" ? name : `${name} (${state})`),
  );
  tables.replaceChildren(...options);
  // A link can name a table. A key is never in an address, because browsers keep addresses.
  const linked = location.hash.slice(1);
  const first = all.find(({ name }) => encodeURIComponent(name) === linked) ?? all.find(({ state }) => state === "resident") ?? all[0];
  tables.value = first?.name ?? "";
  the("table-form").hidden = all.length === 0;
  say(all.length === 0 ? "This server has no tables yet." : "");
}

async function open(name: string): Promise<void> {
  for (const id of OF_A_TABLE) the(id).hidden = true;
  for (const id of ["compared", "linked"]) the(id).hidden = true;
  for (const id of ["facts", "outcome", "verdict"]) the(id).replaceChildren();
  clear();
  say(`Opening ${name}…`);
  try {
    const opened = await client.open(name);
    // The user may have chosen another table meanwhile.
    if (name !== tables.value) return;
    describe(opened);
    say("");
  } catch (error) {
    if (name !== tables.value) return;
    return isOfToken(error) ? askForToken(reason(error)) : say(reason(error), true);
  }
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  the("lookup").hidden = the("compare").hidden = false;
  try {
    await showPlan(name, token, by, () => name === tables.value);
  } catch {
    // Without the list, the rest of the page still works.
  }
}

function describe({ facts }: Opened): void {
  by = facts.byKey ? "key" : "position";
  const isDownloaded = facts.protocol === "download";
  const told: Record<string, Node | string> = {
    protocol: named(facts.protocol),
    parameters: facts.preset,
    security: isDownloaded ? "nothing is sent" : `${facts.securityBits} bits`,
    records: count(facts.records),
    epoch: facts.epoch.slice(0, 12),
  };
  const facts_ = Object.entries(told).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  the("facts").replaceChildren(...facts_);
  the("linked").hidden = !facts.linkable;
  the("also-seen").hidden = isDownloaded;
  the("downloaded").hidden = !isDownloaded;
  the("lookups-per-key").textContent = count(LOOKUPS_PER_KEY);
  const last = count(facts.records - 1);
  the("key-label").textContent = by === "key" ? "Key" : "Position";
  the("key-help").textContent =
    by === "key" ? "Any text. Try one that is not in the table, too." : `A number from 0 to ${last}.`;
  for (const id of ["key", "first", "second"]) {
    the<HTMLInputElement>(id).value = "";
    the<HTMLInputElement>(id).inputMode = by === "key" ? "text" : "numeric";
  }
}

/** Returns the key or the position that was typed. */
function wanted(id: string): string | bigint {
  const input = the<HTMLInputElement>(id);
  const typed = input.value;
  if (typed === "" || (by === "position" && !/^\d{1,19}$/.test(typed.trim()))) {
    input.focus();
    throw new Error(by === "key" ? "Type a key first." : "Type a position: a number from 0 on.");
  }
  return by === "key" ? typed : BigInt(typed.trim());
}

async function lookUp(key: string | bigint): Promise<LookUp> {
  try {
    const found = await client.lookUp(key);
    say("");
    return found;
  } catch (error) {
    say(""); // The progress of the look-up is no longer true.
    if (isOfToken(error)) askForToken("");
    throw error;
  }
}

/** Makes a form run `act`, once at a time, and show its outcome in `place`. `reset` removes the outcome of the run before. */
function onSubmit(id: string, place: HTMLElement, busy: string, act: () => Promise<string | undefined>, reset = () => {}): void {
  const form = the<HTMLFormElement>(id);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button")!;
    if (button.getAttribute("aria-disabled") === "true") return;
    // `disabled` would take the focus away.
    button.setAttribute("aria-disabled", "true");
    const section = form.closest("section")!;
    section.setAttribute("aria-busy", "true");
    place.classList.remove("error");
    place.textContent = busy;
    try {
      const outcome = await act();
      if (outcome !== undefined) place.textContent = outcome;
    } catch (error) {
      reset();
      place.classList.add("error");
      place.textContent = reason(error);
    } finally {
      button.removeAttribute("aria-disabled");
      section.removeAttribute("aria-busy");
    }
  });
}

onSubmit("token-form", the("state"), "Asking the server for its tables…", async () => {
  token = the<HTMLInputElement>("token").value.trim();
  await connect();
  return undefined;
});
onSubmit("lookup-form", the("outcome"), "Looking it up…", async () => show(await lookUp(wanted("key"))), clear);
onSubmit(
  "compare-form",
  the("verdict"),
  "Looking both up…",
  async () => {
    const keys = [wanted("first"), wanted("second")] as const;
    return compare(await lookUp(keys[0]), await lookUp(keys[1]));
  },
  () => (the("compared").hidden = true),
);
tables.addEventListener("change", () => void open(tables.value));
void connect();
