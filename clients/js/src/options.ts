import type { Fetch, Signal } from "./platform.js";
import type { HushStorage } from "./storage.js";

/** An event of a call that takes long. */
export type Progress =
  /** A hint, which clients of some protocols download once, or what is missing of it. */
  | { kind: "hint_start"; bytes: number; present: number }
  /** So many bytes of it are here. */
  | { kind: "hint_progress"; present: number }
  /** A hint that is complete, and has its hash. */
  | { kind: "hint_end" }
  /** Evaluation keys, which clients of some protocols upload before their look-ups, and again after so many of them. */
  | { kind: "keys_upload"; bytes: number }
  /** A request failed, and is made again after a wait. */
  | { kind: "retry"; reason: string; waitMs: number }
  /** A hint, keys or a serial cannot be kept: the next session downloads or uploads again. */
  | { kind: "not_kept"; reason: string };

/** The options of `connect`. */
export interface ConnectOptions {
  /** The token with which the server knows this client, if it asks for one. */
  token?: string;
  /** Gives the connecting up. */
  signal?: Signal;
  /**
   * The longest time that a call takes in milliseconds, with all its requests, retries and waits. Unless told, a call ends when the
   * server is silent for 120,000.
   */
  timeoutMs?: number;
  /** Called with what happens. */
  onProgress?: (progress: Progress) => void;
  /**
   * Where hints, evaluation keys and the newest serials of signed tables are kept for later: IndexedDB in browsers unless told, and null
   * where there is none: then they go
   * with the server object.
   */
  storage?: HushStorage | null;
  /** The longest hint that is accepted, in bytes: 1 GiB unless told. */
  maxHint?: number;
  /** Most look-ups in one request: 64 unless told. */
  maxQueries?: number;
  /** Attempts of a request in all, where a failure may pass: 5 unless told. */
  attempts?: number;
  /**
   * The most look-ups under the same evaluation keys, where the protocol has some, from 1 to 1,048,576: 256 unless told. After them
   * fresh keys are uploaded.
   */
  lookupsPerKey?: number;
  /** The URL of a relay of Oblivious HTTP to ask through, so that the server does not see who asks. */
  relay?: string;
  /**
   * The server's keys for requests through a relay, as the server gives them at `/.well-known/ohttp-gateway`. Unless told, the relay's
   * word is taken for them.
   */
  ohttpKeys?: Uint8Array;
  /**
   * The publisher (64 hex digits) who must have signed the table, under the name by which it is opened; or `KEY=NAME`, if the server
   * has the table under another name than the one that is signed.
   */
  trust?: string;
  /** The only epoch (64 hex digits) that is accepted. */
  epoch?: string;
  /** The name of a parameter set that is accepted although it has less than 128 bits of security. */
  allowWeak?: string;
  /** A function that makes requests in place of `fetch`. */
  fetch?: Fetch;
}

/** The options of a call. */
export interface CallOptions {
  /** Gives the call up. The table stays open. */
  signal?: Signal;
}

/** A table in a server's list. */
export interface TableInfo {
  name: string;
  /** `resident`, or `loading` for a table whose look-ups have to wait. */
  state: string;
  /** Null while it is loading. */
  protocol: string | null;
  records: number | null;
}

/** Facts of an open table. */
export interface TableFacts {
  name: string;
  protocol: string;
  /** The parameter set. */
  preset: string;
  securityBits: number;
  records: number;
  /** 64 hex digits: the hash of what is in the table. */
  epoch: string;
  /** Whether records have keys, or else positions. */
  byKey: boolean;
  /** The columns of a value, if it has several. */
  fields: string[] | null;
  /**
   * Whether each query names the client's evaluation keys: then the server can tell that look-ups come from the same client. It is so
   * in protocols with evaluation keys.
   */
  linkable: boolean;
  /** Bytes that a look-up sends. */
  queryBytes: number;
  /** Bytes that a look-up gets. */
  answerBytes: number;
  /** Bytes of the hint as clients download it; 0 if there is none. */
  hintBytes: number;
  /** Bytes of evaluation keys as clients upload them; 0 if there are none. */
  keyBytes: number;
}

/** Traffic and time of a table since it was opened. Bytes are those of bodies, without HTTP headers. */
export interface Stats {
  /** Look-ups sent, those sent again included. */
  queries: number;
  /** Look-ups answered. */
  answers: number;
  bytesUp: number;
  bytesDown: number;
  /** Bytes sent for one look-up. */
  queryBytes: number;
  /** Bytes received for one look-up. */
  answerBytes: number;
  /** Bytes of uploads of evaluation keys. */
  keyBytesUp: number;
  setupBytesUp: number;
  /** Bytes of lists, descriptors and hints; a hint that was kept is not among them. */
  setupBytesDown: number;
  /** Time by phase. */
  seconds: { descriptor: number; hint: number; keys: number; encrypt: number; network: number; decode: number };
}
