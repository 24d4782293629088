// Types of the platform, under names that may be missing: a program may have the types of browsers, the types of Node, or neither.

type Platform<Name extends string> = typeof globalThis extends Record<Name, { prototype: infer Thing }> ? Thing : never;

/** An `AbortSignal`. */
export type Signal = Platform<"AbortSignal">;
/** A `URL`. */
export type Url = Platform<"URL">;
/** A `Response`. */
export type FetchResponse = Platform<"Response">;
/** The type of `fetch`. */
export type Fetch = typeof globalThis extends { fetch: infer Function } ? Function : never;
/** A `WebAssembly.Module`. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Thing } } } ? Thing : never;
