/** The page: tables, then look-ups in the one that is chosen. */

import { Client, ClientError } from "./client.js";
import type { Progress, TableInfo } from "./client/index.js";
import { compare } from "./compare.js";
import { make, the } from "./dom.js";
import { show } from "./lookup.js";
import type { LookUp, Opened } from "./messages.js";
import { showPlan } from "./plot.js";
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

function tell(progress: Progress): void {
  const bar = the<HTMLProgressElement>("progress");
  if (progress.kind === "hint_start") {
    say(`Downloading what clients of this protocol need once: ${bytes(progress.bytes)}…`);
    Object.assign(bar, { hidden: false, max: progress.bytes, value: progress.present });
  } else if (progress.kind === "hint_progress") bar.value = progress.present;
  else if (progress.kind === "hint_end") bar.hidden = true;
  else if (progress.kind === "keys_upload") say(`Uploading evaluation keys, once: ${bytes(progress.bytes)}…`);
  else say(progress.kind === "retry" ? `${progress.message}; asking again…` : progress.message);
}

async function connect(): Promise<void> {
  try {
    const all = await client.connect(token);
    the("token-form").hidden = true;
    list(all);
    if (tables.value) await open(tables.value);
  } catch (error) {
    const isToken = error instanceof ClientError && error.code === "token";
    the("token-form").hidden = !isToken;
    say(isToken && token === undefined ? "" : reason(error), true);
    if (isToken) the("token").focus();
  }
}

function list(all: readonly TableInfo[]): void {
  const options = all.map(({ name, state }) =>
    make("option", { value: name, disabled: state === "failed" }, state === "resident" ? name : `${name} (${state})`),
  );
  tables.replaceChildren(...options);
  // A table can be linked to; a key never is in an address, which browsers keep.
  const linked = location.hash.slice(1);
  const first = all.find(({ name }) => encodeURIComponent(name) === linked) ?? all.find(({ state }) => state === "resident") ?? all[0];
  tables.value = first?.name ?? "";
  the("table-form").hidden = all.length === 0;
  if (all.length === 0) say("This server has no tables yet.");
}

async function open(name: string): Promise<void> {
  for (const id of OF_A_TABLE) the(id).hidden = true;
  for (const id of ["seen", "times", "compared"]) the(id).hidden = true;
  for (const id of ["found", "verdict"]) the(id).replaceChildren();
  the("requests").replaceChildren(make("p", { className: "help" }, "Look a record up, and its request is shown here."));
  say(`Opening ${name}…`);
  try {
    describe(await client.open(name));
    say("");
  } catch (error) {
    return say(reason(error), true);
  }
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  the("lookup").hidden = the("compare").hidden = false;
  try {
    // Another one may be chosen meanwhile.
    await showPlan(name, token, () => name === tables.value);
  } catch {
    // There is no list then, and all else goes on.
  }
}

function describe({ facts }: Opened): void {
  by = facts.by;
  const told = {
    protocol: `${facts.protocol} (${facts.preset})`,
    security: `${facts.securityBits} bits`,
    records: count(facts.records),
    epoch: facts.epoch.slice(0, 12),
  };
  const facts_ = Object.entries(told).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  the("facts").replaceChildren(...facts_);
  const last = count(facts.records - 1);
  the("key-label").textContent = by === "key" ? "Key" : "Position";
  the("key-help").textContent =
    by === "key" ? "Any text: also one that the table does not have." : `A number from 0 to ${last}.`;
  for (const id of ["key", "first", "second"]) {
    the<HTMLInputElement>(id).value = "";
    the<HTMLInputElement>(id).inputMode = by === "key" ? "text" : "numeric";
  }
}

/** What was typed, as the table wants it. */
function wanted(id: string): string | bigint {
  const typed = the<HTMLInputElement>(id).value;
  if (by === "key") return typed;
  if (!/^\d{1,19}$/.test(typed.trim())) throw new Error("A position is a number from 0 on.");
  return BigInt(typed.trim());
}

async function lookUp(key: string | bigint): Promise<LookUp> {
  try {
    return await client.lookUp(key);
  } finally {
    say(""); // What was told of it on the way.
  }
}

/** Has a form do something, once at a time. What it fails with is said in `place`. */
function onSubmit(id: string, place: HTMLElement, busy: string, act: () => Promise<void>): void {
  const form = the<HTMLFormElement>(id);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button")!;
    if (button.getAttribute("aria-disabled") === "true") return;
    // Not `disabled`: that would take the focus away.
    button.setAttribute("aria-disabled", "true");
    place.classList.remove("error");
    place.textContent = busy;
    try {
      await act();
    } catch (error) {
      place.classList.add("error");
      place.textContent = reason(error);
    } finally {
      button.removeAttribute("aria-disabled");
    }
  });
}

onSubmit("token-form", the("state"), "", async () => {
  token = the<HTMLInputElement>("token").value.trim();
  await connect();
});
onSubmit("lookup-form", the("found"), "Looking it up…", async () => show(await lookUp(wanted("key"))));
onSubmit("compare-form", the("verdict"), "Looking both up…", async () => {
  const keys = [wanted("first"), wanted("second")] as const;
  compare(await lookUp(keys[0]), await lookUp(keys[1]));
});
tables.addEventListener("change", () => void open(tables.value));
void connect();
