import type { Client, OpenTable } from "./wasm/hush.js";
import { CALL, check, CONNECT } from "./check.js";
import { Driver, free } from "./driver.js";
import { HushError, hushError } from "./error.js";
import { module } from "./module.js";
import type { CallOptions, ConnectOptions, Stats, TableFacts, TableInfo } from "./options.js";
import type { Url } from "./platform.js";
import { IndexedDbStorage } from "./storage.js";
import { Value } from "./value.js";

export { HushError, type ErrorCode } from "./error.js";
export { initialize, type Source } from "./module.js";
export type { CallOptions, ConnectOptions, Progress, Stats, TableFacts, TableInfo } from "./options.js";
export { IndexedDbStorage, type HushStorage } from "./storage.js";
export { Value } from "./value.js";

/** A key: text, which is UTF-8 in the table, or bytes; in a table by position, the position of a record, from 0. */
export type Key = string | Uint8Array | number | bigint;

const TIMEOUT_MS = 120_000;

/** Connects to the server at `url`, such as `https://hush.example`. */
export async function connect(url: string | Url, options: ConnectOptions = {}): Promise<Server> {
  check("connect", CONNECT, options);
  const { token, signal, timeoutMs, onProgress, storage: chosen, fetch: chosenFetch, ...others } = options;
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new HushError("options", "that is no token: it has no spaces");
  }
  const exports = await module();
  const storage = chosen === undefined ? (IndexedDbStorage.isThere ? new IndexedDbStorage() : null) : chosen;
  try {
    const choices = JSON.stringify({ ...others, timeoutMs, hasToken: token !== undefined, keepsHints: storage !== null });
    // A base of URLs: `URL` adds the slash that a server's URL ends without.
    const client = new exports.Client(String(url).replace(/\/$/, ""), choices);
    const driver = new Driver(client, {
      token,
      timeoutMs: timeoutMs ?? TIMEOUT_MS,
      storage,
      onProgress,
      // Not as a method of ours: browsers refuse that.
      fetch: chosenFetch ?? ((input, init) => globalThis.fetch(input, init)),
    });
    await driver.run(client.connect(), signal);
    return Server.of_(client, driver);
  } catch (error) {
    throw hushError(error);
  }
}

/** A server and its tables. */
export class Server {
  /** The tables, as they were when the server was asked. */
  readonly tables: readonly TableInfo[];
  #client: Client | undefined;
  readonly #driver: Driver;

  /** @internal */
  static of_(client: Client, driver: Driver): Server {
    return new Server(client, driver);
  }

  private constructor(client: Client, driver: Driver) {
    this.#client = client;
    this.#driver = driver;
    driver.hold();
    this.tables = JSON.parse(client.tables()) as TableInfo[];
  }

  /** Opens a table: by name, or the only one. `Fields` are the columns of its values, for programs that know them. */
  async open<Fields extends object = Record<string, unknown>>(
    name?: string,
    options: CallOptions = {},
  ): Promise<Table<Fields>> {
    if (name !== undefined && typeof name !== "string") {
      throw new HushError("options", "the name of a table is a string: open(name, options), or open() for the only one");
    }
    check("open", CALL, options);
    if (!this.#client) throw closed("server");
    try {
      const work = this.#client.open(name);
      return Table.of_<Fields>((await this.#driver.run(work, options.signal)) as OpenTable, this.#driver);
    } catch (error) {
      throw hushError(error);
    }
  }

  /** Forgets the server. Tables that are open stay so. */
  close(): void {
    if (this.#client) this.#driver.release();
    this.#client = undefined;
  }
}

/** An open table. Calls are made one after the other; to look many records up, `getMany` takes fewer requests. */
export class Table<Fields extends object = Record<string, unknown>> {
  /** What the table is; newer, once a look-up has met a newer epoch. */
  #facts: TableFacts;
  #table: OpenTable | undefined;
  readonly #driver: Driver;
  /** The end of the last call. */
  #turn: Promise<unknown> = Promise.resolve();
  #stats: Stats;

  /** @internal */
  static of_<Fields extends object>(table: OpenTable, driver: Driver): Table<Fields> {
    return new Table<Fields>(table, driver);
  }

  private constructor(table: OpenTable, driver: Driver) {
    this.#table = table;
    this.#driver = driver;
    driver.hold();
    this.#facts = JSON.parse(table.about()) as TableFacts;
    this.#stats = JSON.parse(table.stats()) as Stats;
  }

  get name(): string {
    return this.#facts.name;
  }

  /** What the table is. A look-up that meets a newer epoch of it renews this. */
  get facts(): Readonly<TableFacts> {
    return this.#facts;
  }

  /** What the table has cost since it was opened. */
  get stats(): Readonly<Stats> {
    return this.#stats;
  }

  /** The value of a record, or null if the table has no such key. */
  async get(key: Key, options: CallOptions = {}): Promise<Value<Fields> | null> {
    const [value] = await this.getMany([key], options);
    return value ?? null;
  }

  /**
   * The values of records, one for each of `keys`, in order. The server learns how many there are, and nothing else: what is found
   * does not change what is sent, nor when.
   */
  async getMany(keys: Iterable<Key>, options: CallOptions = {}): Promise<(Value<Fields> | null)[]> {
    check("getMany", CALL, options);
    // Both have items, which would be looked up each.
    if (typeof keys === "string" || keys instanceof Uint8Array) {
      throw new HushError("bad_key", "getMany takes an array of keys: getMany([key]), or get(key)");
    }
    const table = this.#table;
    if (!table) throw closed("table");
    const wanted = Array.from(keys, bytesOrPosition);
    const turn = this.#turn.then(() => this.#lookUp(table, wanted, options.signal));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Wipes the table's secrets from memory, after the calls that were made before. */
  close(): void {
    const table = this.#table;
    if (!table) return;
    this.#table = undefined;
    void this.#turn.then(() => {
      free(table);
      this.#driver.release();
    });
  }

  async #lookUp(
    table: OpenTable,
    wanted: (Uint8Array | bigint)[],
    signal: AbortSignal | undefined,
  ): Promise<(Value<Fields> | null)[]> {
    try {
      const found = await this.#driver.run(table.look_up(wanted), signal);
      const hasFields = this.#renewed(table).fields !== null;
      return (found as (Uint8Array<ArrayBuffer> | null)[]).map((bytes) => bytes && Value.of_<Fields>(bytes, hasFields));
    } catch (error) {
      const hush = hushError(error);
      if (hush.code !== "internal") this.#renewed(table);
      throw hush;
    }
  }

  #renewed(table: OpenTable): TableFacts {
    this.#stats = JSON.parse(table.stats()) as Stats;
    this.#facts = JSON.parse(table.about()) as TableFacts;
    return this.#facts;
  }
}

function bytesOrPosition(key: Key): Uint8Array | bigint {
  if (typeof key === "string") {
    // What UTF-8 does not have would be looked up as something else, and not be found.
    if (/\p{Surrogate}/u.test(key)) throw new HushError("bad_key", "a key has half of a surrogate pair, which is no text");
    return new TextEncoder().encode(key);
  }
  if (key instanceof Uint8Array) return key;
  if (typeof key === "bigint" && key >= 0n && key < 1n << 64n) return key;
  if (typeof key === "number" && Number.isSafeInteger(key) && key >= 0) return BigInt(key);
  throw new HushError("bad_key", "a key is text or bytes, a position a whole number from 0 on: a bigint beyond 2^53");
}

function closed(what: string): HushError {
  return new HushError("closed", `the ${what} is closed: open it again`);
}
