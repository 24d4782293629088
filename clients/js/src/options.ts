import type { Fetch, Signal } from "./platform.js";
import type { HushStorage } from "./storage.js";

/** An event of a long call. */
export type Progress =
  /** The download of a hint, or of its missing rest, begins. Clients of some protocols download a hint once. */
  | { kind: "hint_start"; bytes: number; present: number }
  /** The number of bytes of the hint that are present. */
  | { kind: "hint_progress"; present: number }
  /** The hint is complete, and its hash is right. */
  | { kind: "hint_end" }
  /** The upload of evaluation keys. Clients of some protocols upload them before their look-ups, and again after `lookupsPerKey`. */
  | { kind: "keys_upload"; bytes: number }
  /** A request failed, and is retried after a wait. */
  | { kind: "retry"; reason: string; waitMs: number }
  /** A hint, keys or a serial cannot be stored: the next session downloads or uploads again. */
  | { kind: "not_kept"; reason: string };

/** The options of `connect`. */
export interface ConnectOptions {
  /** The bearer token of this client, for a server that requires one. */
  token?: string;
  /** A signal that aborts the connecting. */
  signal?: Signal;
  /**
   * The longest time of a call in milliseconds, including all its requests, retries and waits. If not given, a call ends when the
   * server is silent for 120,000 ms.
   */
  timeoutMs?: number;
  /** A function that is called with each event. */
  onProgress?: (progress: Progress) => void;
  /**
   * The storage for hints, evaluation keys and the newest serials of signed tables. The default is IndexedDB in browsers, and null
   * elsewhere. With null, they are lost with the server object.
   */
  storage?: HushStorage | null;
  /** The longest hint that is accepted, in bytes; 1 GiB if not given. */
  maxHint?: number;
  /** The most look-ups in one request, from 1 to 256; 64 if not given. */
  maxQueries?: number;
  /** The attempts of a request in all if it fails in a way that may pass, from 1 to 1,000; 5 if not given. */
  attempts?: number;
  /**
   * The most look-ups under the same evaluation keys, from 1 to 1,048,576; 256 if not given. After them, fresh keys are uploaded.
   * Protocols without evaluation keys ignore this.
   */
  lookupsPerKey?: number;
  /** The URL of a relay of Oblivious HTTP to ask through, so that the server does not see who asks. */
  relay?: string;
  /**
   * The server's keys for requests through a relay, as the server gives them at `/.well-known/ohttp-gateway`. If not given, the keys
   * that the relay passes on are trusted.
   */
  ohttpKeys?: Uint8Array;
  /**
   * The public key (64 hex digits) that must have signed the table under the name by which it is opened. `KEY=NAME` if the signed name
   * differs from the name on the server.
   */
  trust?: string;
  /** The only epoch (64 hex digits) that is accepted. */
  epoch?: string;
  /** The name of a parameter set that is accepted although it has less than 128 bits of security. */
  allowWeak?: string;
  /** A function that sends requests in place of `fetch`. */
  fetch?: Fetch;
}

/** The options of a call. */
export interface CallOptions {
  /** A signal that aborts the call. The table stays open. */
  signal?: Signal;
}

/** The options of a look-up. */
export interface LookUpOptions extends CallOptions {
  /**
   * In a sorted table: the rows to find, in place of the value of the key. `fields()` of the value has the columns of the row; those of
   * a prefix are its member `rows`, and `more` says whether there may be further ones.
   */
  rows?: "at-or-below" | "at-or-above" | "prefix" | "in-range";
}

/** A table in a server's list. */
export interface TableInfo {
  name: string;
  /** The state of the table: `resident`, or `loading` while its look-ups have to wait. */
  state: string;
  /** The protocol; null while the table is loading. */
  protocol: string | null;
  records: number | null;
}

/** The facts of an open table. */
export interface TableFacts {
  name: string;
  protocol: string;
  /** The parameter set. */
  preset: string;
  securityBits: number;
  records: number;
  /** The hash of the table's content, in 64 hex digits. */
  epoch: string;
  /** Whether records are looked up by key; otherwise by position. */
  byKey: boolean;
  /** The names of the columns of a value; null if a value is plain bytes. */
  fields: string[] | null;
  /**
   * Whether each query names the client's evaluation keys, as in all protocols that have such keys. The server can then tell that
   * look-ups come from the same client.
   */
  linkable: boolean;
  /** The bytes that a look-up sends. */
  queryBytes: number;
  /** The bytes that a look-up receives. */
  answerBytes: number;
  /** The bytes of the hint as clients download it; 0 if the table has none. */
  hintBytes: number;
  /** The bytes of evaluation keys as clients upload them; 0 if the protocol has none. */
  keyBytes: number;
}

/** The traffic and times of a table since it was opened. Bytes count bodies, without HTTP headers. */
export interface Stats {
  /** The number of look-ups sent, including retries. */
  queries: number;
  /** The number of prepared queries that are ready. */
  prepared: number;
  /** The number of look-ups answered. */
  answers: number;
  bytesUp: number;
  bytesDown: number;
  /** The bytes sent for one look-up. */
  queryBytes: number;
  /** The bytes received for one look-up. */
  answerBytes: number;
  /** The bytes of all uploads of evaluation keys. */
  keyBytesUp: number;
  setupBytesUp: number;
  /** The bytes of lists, descriptors and hints; a hint that comes from the storage is not counted. */
  setupBytesDown: number;
  /** The seconds of each phase. */
  seconds: { descriptor: number; hint: number; keys: number; prepare: number; encrypt: number; network: number; decode: number };
}
