/** What the page and its worker say to each other. */

import type { ErrorCode, Progress, Stats, TableFacts, TableInfo } from "./client/index.js";

/** Look-ups under the same evaluation keys. */
export const LOOKUPS_PER_KEY = 256;

/** A request as it went to the server, and what came back. */
export interface Exchange {
  method: string;
  path: string;
  /** The body. Long ones are cut: `sentBytes` counts all of it. */
  sent: Uint8Array;
  sentBytes: number;
  status: number;
  receivedBytes: number;
  ms: number;
}

export type Phases = Stats["seconds"];

/** What a look-up found, and what the server saw of it. */
export interface LookUp {
  /** Null if the table has no such key. */
  value: Uint8Array<ArrayBuffer> | null;
  /** Whether the key begins or ends with white space. */
  hasSpaces: boolean;
  exchanges: Exchange[];
  /** Seconds by phase. */
  phases: Phases;
  facts: TableFacts;
}

/** An open table, and what opening it took. */
export interface Opened {
  facts: TableFacts;
  phases: Phases;
}

/** What the worker is asked for. */
export type Ask =
  | { kind: "connect"; token: string | undefined }
  | { kind: "open"; table: string }
  | { kind: "lookUp"; key: string | bigint };

export interface Failure {
  code: ErrorCode;
  message: string;
}

export type Question = Ask & { id: number };
export type Reply =
  | { id: number; result: readonly TableInfo[] | Opened | LookUp }
  | { id: number; failure: Failure }
  | { progress: Progress };
