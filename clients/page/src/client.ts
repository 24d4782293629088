/** The page's interface to its worker. */

import type { Progress, TableInfo } from "./client/index.js";
import type { Ask, Failure, LookUp, Opened, Question, Reply } from "./messages.js";

/** The error of a failed look-up, or of a server that cannot be reached. */
export class ClientError extends Error {
  readonly kind: Failure["kind"];

  constructor({ kind, message }: Failure) {
    super(message);
    this.kind = kind;
  }
}

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

/** The browser's trusted types, if it has them: it then accepts the URL of a script only from such a policy. */
declare const trustedTypes:
  | { createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string } }
  | undefined;

export class Client {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(onProgress: (progress: Progress) => void) {
    const url = String(new URL("worker.js", import.meta.url));
    const policy =
      typeof trustedTypes === "undefined" ? undefined : trustedTypes.createPolicy("hushdb", { createScriptURL: (own) => own });
    this.#worker = new Worker(policy ? policy.createScriptURL(url) : url, { type: "module" });
    this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      if ("progress" in data) return onProgress(data.progress);
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("failure" in data) waiting?.reject(new ClientError(data.failure));
      else waiting?.resolve(data.result as never);
    };
    this.#worker.onerror = (event) => {
      const failure = { kind: "Other", message: event.message || "the page's own files are not all there: load it again" } as const;
      for (const { reject } of this.#waiting.values()) reject(new ClientError(failure));
      this.#waiting.clear();
    };
  }

  connect(token?: string): Promise<readonly TableInfo[]> {
    return this.#ask({ kind: "connect", token });
  }

  open(table: string): Promise<Opened> {
    return this.#ask({ kind: "open", table });
  }

  lookUp(key: string | bigint): Promise<LookUp> {
    return this.#ask({ kind: "lookUp", key });
  }

  #ask<T>(ask: Ask): Promise<T> {
    const id = ++this.#last;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ ...ask, id } satisfies Question);
    });
  }
}
