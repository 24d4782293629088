/** All codes, by kind. docs/reference/clients.md defines each code. */
const CODES = {
  OptionError: ["url", "options", "bad_key", "key_too_long", "wrong_lookup", "index_out_of_range", "token_in_the_open"],
  InputError: ["input"],
  ConnectionFailed: ["bad_gateway", "unreachable", "tls", "proxy", "relay", "interrupted"],
  TimedOut: ["timeout"],
  NotAllowed: ["unauthorized", "forbidden"],
  NoSuchTable: ["unknown_table", "no_tables", "choose_table"],
  ServerBusy: ["throttled", "warming", "overloaded", "part_unavailable"],
  Untrusted: ["weak", "insecure", "other_epoch", "not_signed", "other_publisher", "other_name", "older_table"],
  Other: [
    "invalid_request", "not_found", "method_not_allowed", "epoch_gone", "key_mismatch", "key_not_found", "key_preset",
    "too_large", "unsupported_media_type", "unsupported_version", "range_not_satisfiable", "misdirected", "ohttp_key",
    "ohttp_date", "ohttp_replay", "device_lost", "table_failed", "refused", "internal", "moved", "not_hushdb", "hint_too_long",
    "hint_mismatch", "bad_answer", "keys_not_kept", "closed", "aborted", "no_randomness", "cache", "wasm", "client_failed",
  ],
} as const;

/** A kind of error. */
export type ErrorKind = keyof typeof CODES;

/** The code of an error, for programs. */
export type ErrorCode = (typeof CODES)[ErrorKind][number];

/** An error of this package. The message says what to do, and never contains a key. */
export class HushError extends Error {
  override readonly name = "HushError";

  constructor(
    /** The code of the error, for programs. */
    readonly code: ErrorCode,
    message: string,
    options?: { cause?: unknown; status?: number | undefined; retryAfterMs?: number | undefined },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.status = options?.status;
    this.retryAfterMs = options?.retryAfterMs;
  }

  /** The kind of the error: an invalid option, a failed connection, .. */
  get kind(): ErrorKind {
    const kinds = Object.keys(CODES) as ErrorKind[];
    return kinds.find((kind) => (CODES[kind] as readonly ErrorCode[]).includes(this.code)) ?? "Other";
  }

  /** The HTTP status, if the server refused the request, or a proxy in front of it did (`proxy`). */
  readonly status: number | undefined;
  /** The time that a busy server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** @internal Returns anything thrown as an error of this package. */
export function hushError(thrown: unknown): HushError {
  if (thrown instanceof HushError) return thrown;
  if (typeof thrown === "object" && thrown !== null && "code" in thrown && !(thrown instanceof Error)) {
    const { code, message, ...rest } = thrown as { code: ErrorCode; message: string; status?: number; retryAfterMs?: number };
    return new HushError(code, message, rest);
  }
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  return new HushError("client_failed", `the client failed (${said}): please report this`, { cause: thrown });
}

/** @internal Returns the error of a call that its signal has aborted. */
export function aborted(signal: AbortSignal): HushError {
  return new HushError("aborted", "the call was given up", { cause: signal.reason });
}
