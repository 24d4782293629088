/**
 * A storage for hints, seeds of keys and serials of signed tables. A hint or a seed that cannot be stored or found costs another
 * download or upload. Without stored serials, a client notices an outdated signed table only within one connection.
 *
 * A reader of the seeds can read the look-ups of protocols with evaluation keys. Protect the storage like a password.
 */
export interface HushStorage {
  /** Returns the hint with this hash, or undefined. The caller checks the hash of the bytes. */
  hint(hash: string): Promise<Uint8Array | undefined>;
  /** Stores a hint. */
  keepHint(hash: string, bytes: Uint8Array): Promise<void>;
  /** Deletes a damaged hint. */
  forgetHint(hash: string): Promise<void>;
  /**
   * Calls `renew` with the record stored under a name, or undefined, and stores the record that it returns, if any. The two steps are
   * atomic: otherwise two pages that start together would each upload keys, and would count the look-ups of one page only. A record
   * has the seed of evaluation keys, and the number of look-ups under them.
   */
  seed(name: string, renew: (kept: Uint8Array | undefined) => Uint8Array | undefined): Promise<void>;
  /** Renews, like `seed`, the greatest serial seen of a publication, a decimal number. A serial is never deleted. */
  serial?(name: string, renew: (kept: string | undefined) => string | undefined): Promise<void>;
}

const DATABASE = "hushdb";
const DAY = 24 * 3600 * 1000;
/** The time after which an unused hint is deleted, in milliseconds. */
const HINT_KEPT_UNUSED = 60 * DAY;
/** The time after which a seed is deleted, in milliseconds. The caller checks its age too. */
const SEED_LIFETIME = 30 * DAY;

/** The names of the object stores. Version 1 of the database lacks the last one. */
const STORES = ["hints", "used", "seeds", "serials"];

/** A storage in IndexedDB, which all pages of an origin and their workers share. */
export class IndexedDbStorage implements HushStorage {
  #database: Promise<IDBDatabase> | undefined;

  /** Whether this environment has IndexedDB. */
  static get isThere(): boolean {
    return typeof indexedDB !== "undefined";
  }

  async hint(hash: string): Promise<Uint8Array | undefined> {
    const database = await this.#open();
    const transaction = database.transaction(["hints", "used"], "readwrite");
    const bytes = await result<Uint8Array | undefined>(transaction.objectStore("hints").get(hash));
    // The time of use has its own store: otherwise each use would write the bytes again.
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

  /** Replaces the entry of a store with the result of `renew`, unless that is undefined, in one transaction. */
  async #renew<T>(storeName: string, name: string, renew: (kept: T | undefined) => T | undefined): Promise<void> {
    const database = await this.#open();
    // Write transactions on a store run one after another, across all pages.
    const transaction = database.transaction(storeName, "readwrite");
    const store = transaction.objectStore(storeName);
    const ended = done(transaction);
    let failed: { reason: unknown } | undefined;
    const asked = store.get(name);
    // `renew` must run inside the callback: the transaction ends after it.
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

/** Deletes hints that were unused for `HINT_KEPT_UNUSED`, and seeds older than `SEED_LIFETIME`. */
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

/** Returns the time at which the keys of a record were made, in milliseconds since 1970. Bytes 8 to 16 are seconds. */
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
