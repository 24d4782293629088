// Builds tables with the real program, serves them on loopback, and records the requests of clients.

import { execFileSync, spawn } from "node:child_process";
import { createServer, request as httpRequest } from "node:http";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const packed = join(root, "target/npm/");
const program = process.env.HUSHDB ?? join(root, "target/debug/hushdb");
if (!existsSync(program)) throw new Error(`there is no ${program}: 'cargo build -p hushdb', or name one with HUSHDB`);

/** A temporary folder for tables and caches, and the programs that run in it. */
export class Scratch {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "hushdb-js-"));
    this.env = { PATH: process.env.PATH, XDG_CACHE_HOME: join(this.dir, "cache"), XDG_STATE_HOME: join(this.dir, "state") };
    this.servers = [];
  }

  hushdb(...args) {
    return execFileSync(program, args.map(String), { env: this.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Builds a table from rows, which are objects. */
  build(name, rows, ...args) {
    const source = join(this.dir, `${name}.jsonl`);
    writeFileSync(source, rows.map((row) => JSON.stringify(row) + "\n").join(""));
    this.hushdb("build", source, "--out", join(this.dir, name), ...args);
    return name;
  }

  /** Starts a program that listens, and returns its URL. */
  async start(...args) {
    const server = spawn(program, [...args, "--listen", "127.0.0.1:0"], { env: this.env, stdio: ["ignore", "ignore", "pipe"] });
    this.servers.push(server);
    const line = await firstLine(server);
    return line.split(" ")[2].replace(",", "");
  }

  /** Serves tables, and returns the URL of the server. */
  async serve(names, ...args) {
    const url = await this.start("serve", ...names.map((name) => join(this.dir, name)), ...args);
    for (let tries = 0; tries < 400; tries++) {
      const ready = await fetch(`${url}/readyz`).catch(() => undefined);
      await ready?.arrayBuffer();
      if (ready?.status === 200) return url;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`the server at ${url} did not become ready`);
  }

  async stop() {
    for (const server of this.servers) {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGKILL");
      await ended;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function firstLine(server) {
  return new Promise((resolve, reject) => {
    let said = "";
    let isFirst = true;
    server.stderr.setEncoding("utf8").on("data", (text) => {
      said += text; // Drains the pipe: a full one would block the server.
      if (!isFirst || !said.includes("\n")) return;
      isFirst = false;
      const line = said.split("\n")[0];
      if (line.startsWith("listening on http")) resolve(line);
      else reject(new Error(`the server said: ${line}`));
    });
    server.once("exit", () => reject(new Error(`the server stopped: ${said}`)));
  });
}

/** Starts a proxy that forwards requests to a server and records them. `meddle` may answer a request itself, and then returns true. */
export async function proxy(url, meddle = () => false) {
  const requests = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      const noted = { method: request.method, path: request.url, headers: request.headers, body, received: 0 };
      requests.push(noted);
      if (meddle(noted, response)) return;
      const headers = { ...request.headers, host: new URL(url).host };
      const passed = httpRequest(url + request.url, { method: request.method, headers });
      passed.on("response", (answer) => {
        answer.on("data", (part) => (noted.received += part.length));
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      passed.on("error", () => response.destroy());
      passed.end(body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}

/** A storage in memory, such as a program could provide. */
export class MemoryStorage {
  hints = new Map();
  seeds = new Map();
  serials = new Map();
  calls = [];

  async hint(hash) {
    this.calls.push("hint");
    return this.hints.get(hash);
  }

  async keepHint(hash, bytes) {
    this.calls.push("keepHint");
    this.hints.set(hash, bytes);
  }

  async forgetHint(hash) {
    this.calls.push("forgetHint");
    this.hints.delete(hash);
  }

  async seed(name, renew) {
    this.calls.push("seed");
    const renewed = renew(this.seeds.get(name));
    if (renewed) this.seeds.set(name, renewed);
  }

  async serial(name, renew) {
    this.calls.push("serial");
    const renewed = renew(this.serials.get(name));
    if (renewed) this.serials.set(name, renewed);
  }
}

/** Returns rows with deterministic keys and values, of all lengths up to `longest`. */
export function rows(count, longest = 40) {
  return Array.from({ length: count }, (_, i) => ({ k: `k${i}`, v: valueOf(i, longest) }));
}

export function valueOf(i, longest = 40) {
  const length = i % (longest + 1);
  return Array.from({ length }, (_, at) => String.fromCharCode(97 + ((i * 31 + at * at) % 26))).join("");
}
