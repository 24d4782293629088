// The steps of the browser test, by name. The steps run in a page and in Web Workers.

import { connect, HushError } from "/package/index.js";

const steps = {
  /** Looks records up, including by protocols with a hint or evaluation keys, and returns the values and the costs. */
  async lookUp(url = location.origin, options = {}) {
    const told = [];
    const server = await connect(url, { ...options, onProgress: ({ kind }) => told.push(kind) });
    const found = {};
    const costs = {};
    for (const name of ["colpack", "simple", "onion"]) {
      const table = await server.open(name);
      const values = await table.getMany(["k3", "absent"]);
      found[name] = values.map((value) => value && value.text());
      costs[name] = { down: table.stats.setupBytesDown, keys: table.stats.keyBytesUp };
      table.close();
    }
    server.close();
    return { found, costs, told };
  },

  /** Returns the error of a page that asks a server of another origin, which does not allow it. */
  async otherOrigin(url, options) {
    try {
      await connect(url, { ...options, attempts: 1 });
      return "connected";
    } catch (error) {
      return error instanceof HushError ? `${error.code}: ${error.message}` : String(error);
    }
  },

  /** Looks a record up with a bundle of the package. */
  async inBundle(script) {
    const { connect, initialize, place } = await import(script);
    await initialize?.(place);
    const table = await (await connect(location.origin)).open("colpack");
    return (await table.get("k3")).text();
  },

  /** Returns headers of a server of another origin: how long to wait, and the tag of a table. */
  async refusal(url, { token }) {
    const described = await fetch(`${url}/v1/tables/colpack`, { headers: { authorization: `Bearer ${token}` } });
    const table = await (await connect(url, { token, attempts: 1 })).open("colpack");
    for (;;) {
      try {
        await table.getMany(["k1", "k2", "k3", "k4"]);
      } catch (error) {
        return { busy: error.retryAfterMs, etag: described.headers.get("etag") };
      }
    }
  },

  async withoutRandomness() {
    const own = crypto.getRandomValues;
    Crypto.prototype.getRandomValues = undefined;
    try {
      await connect(location.origin);
      return "connected";
    } catch (error) {
      return error.code;
    } finally {
      Crypto.prototype.getRandomValues = own;
    }
  },

  /** Returns the numbers of stored hints and records of keys. */
  async kept() {
    const database = await opened();
    const count = (name) => result(database.transaction(name).objectStore(name).count());
    const counts = [await count("hints"), await count("seeds")];
    database.close();
    return counts;
  },

  /** Makes everything in the storage older by this number of days. */
  async age(days) {
    const database = await opened();
    const past = Date.now() - days * 24 * 3600 * 1000;
    for (const name of ["used", "seeds"]) {
      const store = database.transaction(name, "readwrite").objectStore(name);
      for (const key of await result(store.getAllKeys())) {
        const value = await result(store.get(key));
        await result(store.put(name === "used" ? past : { ...value, made: past }, key));
      }
    }
    database.close();
  },

  /** Runs the check in a Web Worker, or in several at once. */
  async inWorkers(count, ...step) {
    const one = () =>
      new Promise((resolve, reject) => {
        const worker = new Worker("/test/page.mjs", { type: "module" });
        worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
        worker.onerror = (event) => reject(new Error(event.message));
        worker.postMessage(step);
      });
    return Promise.all(Array.from({ length: count }, one));
  },
};

function opened() {
  return result(indexedDB.open("hushdb"));
}

function result(asked) {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function run([name, ...args]) {
  try {
    return { result: await steps[name](...args) };
  } catch (error) {
    return { error: `${error.code ?? ""} ${error.stack ?? error}` };
  }
}

if (typeof document === "undefined") {
  addEventListener("message", async ({ data }) => postMessage(await run(data)));
} else {
  // Fetches one step after another from the test.
  for (let answer = {}; ; ) {
    const response = await fetch("/step", { method: "POST", body: JSON.stringify(answer) });
    if (response.status !== 200) break;
    answer = await run(await response.json());
  }
}
