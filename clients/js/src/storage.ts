/**
 * Where hints, seeds of keys and serials of signed tables are kept for later. What cannot be kept or found costs another download
 * or upload; without serials an old table that a publisher signed is not told from its newest, but within one connection.
 *
 * Whoever reads the seeds can read the look-ups of protocols with evaluation keys: keep them as you would keep a password.
 */
export interface HushStorage {
  /** Returns the hint of this hash, if it is kept. Its hash is checked by the caller. */
  hint(hash: string): Promise<Uint8Array | undefined>;
  /** Keeps a hint. */
  keepHint(hash: string, bytes: Uint8Array): Promise<void>;
  /** Forgets a hint, which is damaged. */
  forgetHint(hash: string): Promise<void>;
  /**
   * Calls `renew` with what is kept under a name, if anything is, and keeps what it returns, if it returns anything. Nobody else
   * changes what is kept under the name meanwhile: otherwise two pages that start together upload keys each, and count look-ups of
   * both only once. A record has the seed of evaluation keys, and the number of look-ups under them.
   */
  seed(name: string, renew: (kept: Uint8Array | undefined) => Uint8Array | undefined): Promise<void>;
  /** The record of the greatest serial that was seen of a publication, a decimal number. It is never deleted. */
  serial?(name: string, renew: (kept: string | undefined) => string | undefined): Promise<void>;
}

const DATABASE = "hushdb";
const DAY = 24 * 3600 * 1000;
/** How long a hint stays without being used. */
const HINT_KEPT_UNUSED = 60 * DAY;
/** How long a seed is used; its age is checked by the caller, too. */
const SEED_LIFETIME = 30 * DAY;

/** The databases of version 1 were all but the last. */
const STORES = ["hints", "used", "seeds", "serials"];

/** Keeps hints, seeds and serials in IndexedDB: for all pages of an origin, and their workers. */
export class IndexedDbStorage implements HushStorage {
  #database: Promise<IDBDatabase> | undefined;

  /** Whether there is an IndexedDB. */
  static get isThere(): boolean {
    return typeof indexedDB !== "undefined";
  }

  async hint(hash: string): Promise<Uint8Array | undefined> {
    const database = await this.#open();
    const transaction = database.transaction(["hints", "used"], "readwrite");
    const bytes = await result<Uint8Array | undefined>(transaction.objectStore("hints").get(hash));
    // Apart from the bytes, which would be written again.
    if (bytes) transaction.objectStore("used").put(Date.now(), hash);
    await done(transaction);
    return bytes;
  }

  async keepHint(hash: string, bytes: Uint8Array): Promise<void> {
    const database = await this.#open();
    const transaction = database.transaction(["hints", "used"], "readwrite");
    transaction.objectStore("hints").put(bytes, hash);
    transaction.objectStore("used").put(Date.now(), hash);
    await done(transaction);
  }

  async forgetHint(hash: string): Promise<void> {
    const database = await this.#open();
    const transaction = database.transaction(["hints", "used"], "readwrite");
    transaction.objectStore("hints").delete(hash);
    transaction.objectStore("used").delete(hash);
    await done(transaction);
  }

  async seed(name: string, renew: (kept: Uint8Array | undefined) => Uint8Array | undefined): Promise<void> {
    type Seed = { bytes: Uint8Array; made: number };
    await this.#renew<Seed>("seeds", name, (kept) => {
      const bytes = renew(kept?.bytes);
      return bytes && { bytes, made: madeAt(bytes) };
    });
  }

  async serial(name: string, renew: (kept: string | undefined) => string | undefined): Promise<void> {
    await this.#renew<string>("serials", name, renew);
  }

  /** Puts what `renew` makes of what a store has under a name there, if it makes anything. */
  async #renew<T>(storeName: string, name: string, renew: (kept: T | undefined) => T | undefined): Promise<void> {
    const database = await this.#open();
    // Transactions that write to a store come one after the other, those of other pages too.
    const transaction = database.transaction(storeName, "readwrite");
    const store = transaction.objectStore(storeName);
    const ended = done(transaction);
    let failed: { reason: unknown } | undefined;
    const asked = store.get(name);
    // In the callback: after it, the transaction is over.
    asked.onsuccess = () => {
      try {
        const renewed = renew(asked.result as T | undefined);
        if (renewed !== undefined) store.put(renewed, name);
      } catch (reason) {
        failed = { reason };
        transaction.abort();
      }
    };
    try {
      await ended;
    } catch (error) {
      throw failed ? failed.reason : error;
    }
  }

  #open(): Promise<IDBDatabase> {
    this.#database ??= opened().catch((error: unknown) => {
      this.#database = undefined;
      throw error;
    });
    return this.#database;
  }
}

async function opened(): Promise<IDBDatabase> {
  const asked = indexedDB.open(DATABASE, 2);
  asked.onupgradeneeded = () => {
    const database = asked.result;
    const missing = STORES.filter((name) => !database.objectStoreNames.contains(name));
    missing.forEach((name) => database.createObjectStore(name));
  };
  const database = await result(asked);
  // Another page may have a newer version of this package.
  database.onversionchange = () => database.close();
  await removeOld(database);
  return database;
}

/** Deletes hints that have not been used for long, and seeds that are not used any more. */
async function removeOld(database: IDBDatabase): Promise<void> {
  const transaction = database.transaction(["hints", "used", "seeds"], "readwrite");
  const [hints, used, seeds] = ["hints", "used", "seeds"].map((name) => transaction.objectStore(name));
  const now = Date.now();
  each(used!, (hash, time: number) => {
    if (now - time > HINT_KEPT_UNUSED) [hints!, used!].forEach((store) => store.delete(hash));
  });
  each(seeds!, (name, { made }: { made: number }) => {
    if (now - made > SEED_LIFETIME) seeds!.delete(name);
  });
  await done(transaction);
}

/** When the keys of a record were made: bytes 8 to 16 are seconds since 1970. */
function madeAt(record: Uint8Array): number {
  return 1000 * Number(new DataView(record.buffer, record.byteOffset).getBigUint64(8, true));
}

function each<T>(store: IDBObjectStore, see: (key: IDBValidKey, value: T) => void): void {
  const asked = store.openCursor();
  asked.onsuccess = () => {
    const cursor = asked.result;
    if (!cursor) return;
    see(cursor.key, cursor.value as T);
    cursor.continue();
  };
}

function result<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

function done(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}
