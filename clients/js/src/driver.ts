import type { Client, Work } from "./wasm/hush.js";
import { aborted, hushError } from "./error.js";
import type { Progress } from "./options.js";
import type { HushStorage } from "./storage.js";

/** The next step that a session asks for. */
type Step =
  | { kind: "send"; method: string; path: string; headers: string[]; body: Uint8Array<ArrayBuffer>; msLeft: number | undefined }
  | { kind: "wait"; ms: number; hints: string[]; keys: string[]; serials: string[] }
  | { kind: "done"; result: unknown };

/** The input and output of the sessions of one server: requests, waits, storage. The sessions in WebAssembly make all decisions. */
export class Driver {
  #holders = 0;

  constructor(
    private readonly client: Client,
    private readonly choices: {
      token: string | undefined;
      timeoutMs: number;
      storage: HushStorage | null;
      onProgress: ((progress: Progress) => void) | undefined;
      fetch: typeof fetch;
    },
  ) {}

  /** Runs `work` to its end, and returns its result. Throws a `HushError` if the work fails or `signal` aborts it. */
  async run(work: Work, signal: AbortSignal | undefined): Promise<unknown> {
    try {
      for (;;) {
        if (signal?.aborted) {
          work.abandon();
          throw aborted(signal);
        }
        const step = work.advance() as Step;
        this.#tell(work);
        if (step.kind === "done") return step.result;
        if (step.kind === "send") await this.#exchange(work, step, signal);
        else await this.#wait(step, signal);
      }
    } catch (error) {
      throw hushError(error);
    } finally {
      free(work);
      await this.#keep();
    }
  }

  /** Counts one more holder of the server's client: a server object or an open table. */
  hold(): void {
    this.#holders += 1;
  }

  /** Counts one holder less. The last one frees the client, with its keys and hints. */
  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) free(this.client);
  }

  /** Sends a request, and passes the response, or the failure, to `work`. */
  async #exchange(work: Work, step: Step & { kind: "send" }, signal: AbortSignal | undefined): Promise<void> {
    const silence = new Silence(this.choices.timeoutMs, step.msLeft, signal);
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const response = await silence.until("the response", this.#send(step, silence.signal));
      if (response.type === "opaqueredirect") {
        const said = "it sends clients elsewhere, and a browser does not tell where: use the URL that it moved to";
        return work.fail("odd", said, false);
      }
      const headers = [...response.headers].flat();
      let more = work.begin(response.status, headers, bodyBytes(response));
      reader = response.body?.getReader();
      while (more) {
        const part = reader && (await silence.until("the rest of the response", reader.read()));
        if (!part || part.done) {
          work.end();
          more = false;
        } else {
          more = work.body(part.value);
          this.#tell(work);
        }
      }
    } catch (error) {
      if (signal?.aborted) return; // The loop in `run` ends the call.
      if (silence.isOver) work.fail("timeout", silence.waitedFor, false);
      else if (isOfTransport(error)) work.fail("unreachable", reason(error), isTransient(error));
      else throw error;
    } finally {
      silence.end();
      // After an early end, the rest of the body is not needed. After a full read, this has no effect.
      reader?.cancel().catch(() => undefined);
    }
  }

  async #send(step: Step & { kind: "send" }, signal: AbortSignal): Promise<Response> {
    const headers = new Headers();
    for (let at = 0; at < step.headers.length; at += 2) headers.append(step.headers[at]!, step.headers[at + 1]!);
    if (this.choices.token !== undefined) headers.set("authorization", `Bearer ${this.choices.token}`);
    try {
      return await this.choices.fetch(this.client.url + step.path, {
        method: step.method,
        headers,
        body: step.method === "GET" ? null : step.body,
        signal,
        // The session decides whether to follow a redirect. Queries are never equal. Nothing but the token identifies the client.
        redirect: "manual",
        cache: "no-store",
        credentials: "omit",
        referrerPolicy: "no-referrer",
      });
    } catch (cause) {
      throw new TransportError(cause);
    }
  }

  /** Waits for the time of `step`, then provides the stored hints, keys and serials that it names. */
  async #wait(step: Step & { kind: "wait" }, signal: AbortSignal | undefined): Promise<void> {
    if (step.ms > 0) await sleep(step.ms, signal);
    for (const hash of step.hints) {
      const bytes = await this.#kept(undefined, (storage) => storage.hint(hash));
      this.client.provide_hint(hash, bytes);
    }
    for (const name of step.keys) await this.#provideKeys(name);
    for (const name of step.serials) await this.#provideSerial(name);
  }

  /** Provides a stored record of keys to the client, and stores the record that the client returns. */
  async #provideKeys(name: string): Promise<void> {
    let isProvided = false;
    await this.#kept(undefined, (storage) =>
      storage.seed(name, (kept) => {
        const renewed = this.client.provide_keys(name, kept);
        isProvided = true;
        return renewed;
      }),
    );
    if (!isProvided) this.client.provide_keys(name, undefined);
  }

  /** Provides the stored serial of a publication to the client, and stores a greater one. */
  async #provideSerial(name: string): Promise<void> {
    let isProvided = false;
    await this.#kept(undefined, async (storage) =>
      storage.serial?.(name, (kept) => {
        const renewed = this.client.provide_serial(name, kept);
        isProvided = true;
        return renewed;
      }),
    );
    if (!isProvided) this.client.provide_serial(name, undefined);
  }

  /** Stores new hints and records of keys, and deletes damaged hints. Never fails: the result of the call is already known. */
  async #keep(): Promise<void> {
    let damaged: string[], fresh: { hash: string; bytes: Uint8Array }[];
    try {
      damaged = this.client.damaged_hints() as typeof damaged;
      fresh = this.client.fresh_hints() as typeof fresh;
      for (const name of this.client.noted_keys()) await this.#provideKeys(name);
    } catch {
      return; // A module that has failed cannot be used again.
    }
    for (const hash of damaged) await this.#kept(undefined, (storage) => storage.forgetHint(hash));
    for (const { hash, bytes } of fresh) await this.#kept(undefined, (storage) => storage.keepHint(hash, bytes));
  }

  /** Returns the result of `ask`, or `otherwise` if there is no storage or it fails. */
  async #kept<T>(otherwise: T, ask: (storage: HushStorage) => Promise<T>): Promise<T> {
    if (!this.choices.storage) return otherwise;
    try {
      return await ask(this.choices.storage);
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      this.choices.onProgress?.({ kind: "not_kept", reason: `the storage cannot be used (${said})` });
      return otherwise;
    }
  }

  #tell(work: Work): void {
    for (const event of JSON.parse(work.events()) as Progress[]) this.choices.onProgress?.(event);
  }
}

/** Frees an object of WebAssembly. Ignores errors: after a failure in WebAssembly, its objects cannot be freed. */
export function free(thing: { free(): void }): void {
  try {
    thing.free();
  } catch {
    // The failure itself was reported before.
  }
}

/** A failure of `fetch`, as distinct from errors of this package. */
class TransportError extends Error {
  constructor(override readonly cause: unknown) {
    super("no response");
  }
}

/** A watch over one request. Aborts it if the server is silent for too long, the call's time is over, or the caller aborts. */
class Silence {
  readonly #controller = new AbortController();
  readonly #giveUp = () => this.#controller.abort(this.caller?.reason);
  readonly #end: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  isOver = false;
  waitedFor = "";

  constructor(
    private readonly most: number,
    msLeft: number | undefined,
    private readonly caller: AbortSignal | undefined,
  ) {
    this.#end = performance.now() + (msLeft ?? Infinity);
    caller?.addEventListener("abort", this.#giveUp);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Waits for the server's next part, `comes`, which error messages call `what`. Throws a `TransportError` if the part fails. */
  async until<T>(what: string, comes: Promise<T>): Promise<T> {
    this.waitedFor = what;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, Math.min(this.most, this.#end - performance.now()));
    try {
      return await comes;
    } catch (error) {
      throw error instanceof TransportError ? error : new TransportError(error);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  end(): void {
    this.caller?.removeEventListener("abort", this.#giveUp);
  }
}

/** Returns the declared length of the body, or undefined if there is none. A content coding makes the header useless. */
function bodyBytes(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  if (length === null || response.headers.has("content-encoding")) return undefined;
  return /^\d+$/.test(length) ? Number(length) : undefined;
}

function isOfTransport(error: unknown): error is TransportError {
  return error instanceof TransportError;
}

/** Returns the system's reason for a failed request. */
function reason(error: TransportError): string {
  const failed = error.cause as { message?: string; cause?: { code?: string; message?: string } } | undefined;
  const system = failed?.cause?.code ?? failed?.cause?.message;
  if (system) return system;
  const said = failed?.message ?? String(failed);
  return typeof document === "undefined" && typeof WorkerGlobalScope === "undefined"
    ? said
    : `${said}; a browser also says this where the server does not allow this page (serve --allow-origin ${location.origin}), or is not https and the page is`;
}

/** Returns whether another attempt could succeed. */
function isTransient(error: TransportError): boolean {
  const code = (error.cause as { cause?: { code?: string } } | undefined)?.cause?.code;
  return code !== "ENOTFOUND" && !code?.startsWith("ERR_INVALID") && !code?.includes("CERT");
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

declare const WorkerGlobalScope: unknown;
