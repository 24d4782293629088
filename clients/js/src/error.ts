/** A kind of error, for programs. */
export type ErrorCode =
  /** Of the caller. */
  | "url" | "options" | "bad_key" | "key_too_long" | "wrong_lookup" | "index_out_of_range" | "closed" | "aborted"
  /** Of the way to the server. */
  | "unreachable" | "timeout" | "moved" | "proxy" | "not_hushdb" | "interrupted" | "relay"
  /** Refusals of the server. */
  | "token" | "token_in_the_open" | "no_tables" | "choose_table" | "unknown_table" | "busy" | "refused"
  /** Of the table: it is not accepted, or it changes too fast. */
  | "weak" | "insecure" | "other_epoch" | "not_signed" | "other_publisher" | "other_name" | "older_table"
  | "hint_too_long" | "changed"
  /** The server does not keep to the protocol. */
  | "bad_answer" | "hint_mismatch" | "keys_not_kept"
  /** Of this machine. */
  | "no_randomness" | "memory" | "wasm" | "internal";

/** An error of this package. Its message says what to do, and never names what was looked up. */
export class HushError extends Error {
  override readonly name = "HushError";

  constructor(
    /** The kind of the error, for programs. */
    readonly code: ErrorCode,
    message: string,
    options?: {
      cause?: unknown;
      status?: number | undefined;
      retryAfterMs?: number | undefined;
    },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.status = options?.status;
    this.retryAfterMs = options?.retryAfterMs;
  }

  /** The HTTP status, where the server refused (`refused`), or a proxy in front of it answered (`proxy`). */
  readonly status: number | undefined;
  /** How long a busy server asks to wait. */
  readonly retryAfterMs: number | undefined;
}

/** @internal What WebAssembly threw, as an error of this package. */
export function hushError(thrown: unknown): HushError {
  if (thrown instanceof HushError) return thrown;
  if (typeof thrown === "object" && thrown !== null && "code" in thrown && !(thrown instanceof Error)) {
    const { code, message, status, retryAfterMs } = thrown as {
      code: ErrorCode;
      message: string;
      status?: number;
      retryAfterMs?: number;
    };
    return new HushError(code, message, { status, retryAfterMs });
  }
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  return new HushError("internal", `the client failed (${said}): please report this`, { cause: thrown });
}

/** @internal What a given-up call throws. */
export function aborted(signal: AbortSignal): HushError {
  return new HushError("aborted", "the call was given up", { cause: signal.reason });
}
