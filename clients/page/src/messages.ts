/** The messages between the page and its worker. */

import type { ErrorKind, Progress, Stats, TableFacts, TableInfo } from "./client/index.js";

/** The number of look-ups under the same evaluation keys. */
export const LOOKUPS_PER_KEY = 256;

/** A request as it was sent to the server, and its response. */
export interface Exchange {
  method: string;
  path: string;
  /** The body of the request, cut if it is long. `sentBytes` counts the whole body. */
  sent: Uint8Array;
  sentBytes: number;
  status: number;
  receivedBytes: number;
  ms: number;
}

export type Phases = Stats["seconds"];

/** The value that a look-up found, and the requests that the server saw. */
export interface LookUp {
  /** The value, or null if the table has no such key. */
  value: Uint8Array<ArrayBuffer> | null;
  /** Whether the key begins or ends with white space. */
  hasSpaces: boolean;
  exchanges: Exchange[];
  /** The seconds of each phase. */
  phases: Phases;
  facts: TableFacts;
}

/** An open table, and the traffic and time that opening it took. */
export interface Opened {
  facts: TableFacts;
  phases: Phases;
}

/** A request of the page to its worker. */
export type Ask =
  | { kind: "connect"; token: string | undefined }
  | { kind: "open"; table: string }
  | { kind: "lookUp"; key: string | bigint };

export interface Failure {
  kind: ErrorKind;
  message: string;
}

export type Question = Ask & { id: number };
export type Reply =
  | { id: number; result: readonly TableInfo[] | Opened | LookUp }
  | { id: number; failure: Failure }
  | { progress: Progress };
