import type { Client, OpenTable } from "./wasm/hush.js";
import { CALL, check, CONNECT, LOOK_UP } from "./check.js";
import { Driver, free } from "./driver.js";
import { HushError, hushError } from "./error.js";
import { module } from "./module.js";
import type { CallOptions, ConnectOptions, LookUpOptions, Stats, TableFacts, TableInfo } from "./options.js";
import type { Url } from "./platform.js";
import { IndexedDbStorage } from "./storage.js";
import { Value } from "./value.js";

export { HushError, type ErrorCode, type ErrorKind } from "./error.js";
export { initialize, type Source } from "./module.js";
export type { CallOptions, ConnectOptions, LookUpOptions, Progress, Stats, TableFacts, TableInfo } from "./options.js";
export { IndexedDbStorage, type HushStorage } from "./storage.js";
export { Value } from "./value.js";

/** A column of a key: text, which is parsed as the column's type, bytes, or a whole number. */
export type KeyColumn = string | Uint8Array | number | bigint;

/** A key: its only column, or an array of its columns. In a table by position, the position of a record, from 0. */
export type Key = KeyColumn | readonly KeyColumn[];

/** A key in the form that the session takes. */
type Wanted = Uint8Array | bigint | (Uint8Array | bigint)[];

const TIMEOUT_MS = 120_000;

/** Connects to the server at `url`, such as `https://hush.example`. Rejects with a `HushError`, as every call of this package does. */
export async function connect(url: string | Url, options: ConnectOptions = {}): Promise<Server> {
  check("connect", CONNECT, options);
  const { signal, onProgress, storage: chosen, fetch: chosenFetch, ohttpKeys, ...others } = options;
  const { timeoutMs, relay } = options;
  // A token that is read from a file often ends with a line end.
  const token = options.token?.replace(/[\r\n]+$/, "");
  if ([url, relay].some((own) => /^[a-z]+:\/\/[^/?#]*@/i.test(String(own)))) {
    const advice = "leave them out, and give a token with the option 'token'";
    throw new HushError("url", `no request goes to a URL with a user and a password: ${advice}`);
  }
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new HushError("options", "that is no token: it has a space, a line end or a character that is not ASCII");
  }
  if (ohttpKeys !== undefined && relay === undefined) {
    throw new HushError("options", "ohttpKeys are for requests through a relay: give its URL as the option 'relay'");
  }
  const exports = await module();
  const storage = chosen === undefined ? (IndexedDbStorage.isThere ? new IndexedDbStorage() : null) : chosen;
  try {
    const choices = JSON.stringify({ ...others, token, ohttpKeys: ohttpKeys && [...ohttpKeys] });
    // Paths begin with a slash, so the base must not end with the one that `URL` adds.
    const client = new exports.Client(String(url).replace(/\/$/, ""), choices, storage !== null);
    const driver = new Driver(client, {
      // Sealed requests carry the token inside: a relay must not see it.
      token: relay === undefined ? token : undefined,
      timeoutMs: timeoutMs ?? TIMEOUT_MS,
      storage,
      onProgress,
      // A wrapper, because browsers refuse `fetch` as a method of another object.
      fetch: chosenFetch ?? ((input, init) => globalThis.fetch(input, init)),
    });
    await driver.run(client.connect(), signal);
    return Server.of_(client, driver);
  } catch (error) {
    throw hushError(error);
  }
}

/** A connection to a server, and the list of its tables. */
export class Server {
  /** The tables of the server, as it listed them when `connect` asked. */
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

  /** Opens the table with this name, or the server's only one. `Fields` is the type of its values' columns, if the program knows it. */
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

  /** Closes the connection. Open tables stay open. */
  close(): void {
    if (this.#client) this.#driver.release();
    this.#client = undefined;
  }
}

/** An open table. Calls run one after another. For many records, `getMany` takes fewer requests than `get`. */
export class Table<Fields extends object = Record<string, unknown>> {
  /** The facts of the newest epoch that a look-up has met. */
  #facts: TableFacts;
  #table: OpenTable | undefined;
  readonly #driver: Driver;
  /** A promise of the end of the last call. */
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

  /** The facts of the table. A look-up that meets a newer epoch renews them. */
  get facts(): Readonly<TableFacts> {
    return this.#facts;
  }

  /** The traffic and the times of the table since it was opened. */
  get stats(): Readonly<Stats> {
    return this.#stats;
  }

  /** Returns the value of a record, or null if the table has no such key. */
  async get(key: Key, options: LookUpOptions = {}): Promise<Value<Fields> | null> {
    const [value] = await this.getMany([key], options);
    return value ?? null;
  }

  /**
   * Returns the values of records, one for each of `keys`, in order. The server learns only how many keys there are: the values found
   * change neither the requests nor their timing.
   */
  async getMany(keys: Iterable<Key>, options: LookUpOptions = {}): Promise<(Value<Fields> | null)[]> {
    check("getMany", LOOK_UP, options);
    // Both are iterable: each letter or byte would be looked up.
    if (typeof keys === "string" || keys instanceof Uint8Array) {
      throw new HushError("bad_key", "getMany takes an array of keys: getMany([key]), or get(key)");
    }
    const table = this.#table;
    if (!table) throw closed("table");
    const wanted = Array.from(keys, wantedOf);
    const turn = this.#turn.then(() => this.#lookUp(table, wanted, options));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Prepares queries, so that up to `count` are ready and take less time when they are asked: in tables of simple, frodo and double.
   * Each serves one look-up. Blocks the thread meanwhile. Returns the number that is ready; together they take at most 256 MiB.
   */
  async prepare(count: number): Promise<number> {
    if (!Number.isSafeInteger(count) || count < 0) throw new HushError("options", "prepare takes a whole number of queries");
    const table = this.#table;
    if (!table) throw closed("table");
    const turn = this.#turn.then(() => this.#prepared(table, count));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Closes the table: wipes its secrets from memory once the earlier calls have ended. */
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
    wanted: Wanted[],
    { signal, rows }: LookUpOptions,
  ): Promise<(Value<Fields> | null)[]> {
    try {
      const found = await this.#driver.run(table.look_up(wanted, rows), signal);
      const hasFields = this.#renewed(table).fields !== null || rows !== undefined;
      return (found as (Uint8Array<ArrayBuffer> | null)[]).map((bytes) => bytes && Value.of_<Fields>(bytes, hasFields));
    } catch (error) {
      const hush = hushError(error);
      if (hush.code !== "client_failed") this.#renewed(table);
      throw hush;
    }
  }

  #prepared(table: OpenTable, count: number): number {
    try {
      return table.prepare(Math.min(count, 0xffff_ffff));
    } catch (error) {
      throw hushError(error);
    } finally {
      this.#renewed(table);
    }
  }

  #renewed(table: OpenTable): TableFacts {
    this.#stats = JSON.parse(table.stats()) as Stats;
    this.#facts = JSON.parse(table.about()) as TableFacts;
    return this.#facts;
  }
}

function wantedOf(key: Key): Wanted {
  return Array.isArray(key) ? key.map(bytesOrNumber) : bytesOrNumber(key as KeyColumn);
}

function bytesOrNumber(column: KeyColumn): Uint8Array | bigint {
  if (typeof column === "string") {
    // UTF-8 cannot encode half of a surrogate pair: the encoder would replace it, and look up another key.
    if (/\p{Surrogate}/u.test(column)) throw new HushError("bad_key", "a key has half of a surrogate pair, which is no text");
    return new TextEncoder().encode(column);
  }
  if (column instanceof Uint8Array || typeof column === "bigint") return column;
  if (Number.isSafeInteger(column)) return BigInt(column);
  const form = "a key is text, bytes, a whole number (a bigint beyond 2^53), or an array of these, one for each column";
  throw new HushError("bad_key", form);
}

function closed(what: string): HushError {
  return new HushError("closed", `the ${what} is closed: open it again`);
}
