/** The worker of the page, which looks records up. Checking a hint of many MB would block the page's own thread. */

import { connect, HushError, type Server, type Stats, type Table } from "./client/index.js";
import { type Exchange, LOOKUPS_PER_KEY, type LookUp, type Opened, type Phases, type Question, type Reply } from "./messages.js";

/** The most bytes of a body that are shown. */
const MOST_SHOWN = 1 << 18;

declare function postMessage(reply: Reply): void;

let server: Server | undefined;
let table: Table | undefined;
let exchanges: Exchange[] = [];
/** A promise of the end of the last question: questions are answered one after another. */
let turn: Promise<unknown> = Promise.resolve();

addEventListener("message", ({ data }: MessageEvent<Question>) => {
  turn = turn.then(() => answer(data));
});

async function answer(question: Question): Promise<void> {
  const { id } = question;
  try {
    postMessage({ id, result: await result(question) });
  } catch (error) {
    const { kind, message } = error instanceof HushError ? error : { kind: "Other" as const, message: String(error) };
    postMessage({ id, failure: { kind, message } });
  }
}

async function result(question: Question) {
  switch (question.kind) {
    case "connect":
      server?.close();
      // The worker's script is one folder below the server's root, which may be behind a path prefix.
      server = await connect(new URL("../", import.meta.url), {
        ...(question.token === undefined ? {} : { token: question.token }),
        onProgress: (progress) => postMessage({ progress }),
        fetch: seen,
        // Few attempts: a person waits, and can ask again.
        attempts: 2,
        lookupsPerKey: LOOKUPS_PER_KEY,
      });
      return server.tables;
    case "open":
      return open(question.table);
    case "lookUp":
      return lookUp(question.key);
  }
}

async function open(name: string): Promise<Opened> {
  table?.close();
  table = undefined;
  table = await server!.open(name);
  return { facts: table.facts, phases: table.stats.seconds };
}

async function lookUp(key: string | bigint): Promise<LookUp> {
  const asked = table!;
  const before = asked.stats.seconds;
  exchanges = [];
  const value = await asked.get(key);
  return {
    value: value && Uint8Array.from(value),
    hasSpaces: typeof key === "string" && key !== key.trim(),
    exchanges,
    phases: since(before, asked.stats.seconds),
    facts: asked.facts,
  };
}

function since(before: Phases, after: Stats["seconds"]): Phases {
  const names = Object.keys(after) as (keyof Phases)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as unknown as Phases;
}

/** Calls `fetch`, and records the request and the response. */
async function seen(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const body: Uint8Array = init.body instanceof Uint8Array ? init.body : new Uint8Array();
  const { pathname } = new URL(String(input));
  const noted = { sent: body.slice(0, MOST_SHOWN), sentBytes: body.length, method: init.method ?? "GET", path: pathname };
  const started = performance.now();
  const response = await fetch(input, init);
  const receivedBytes = Number(response.headers.get("content-length") ?? 0);
  exchanges.push({ ...noted, status: response.status, receivedBytes, ms: performance.now() - started });
  return response;
}
