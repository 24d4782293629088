// A program that is only compiled: it checks the types of the package.

import { connect, HushError, initialize, type HushStorage, type Progress, type Stats, type Value } from "@hushdb/client";
import * as inline from "@hushdb/client/inline";
import wasm from "@hushdb/client/hush.wasm";

export async function name(email: string, signal: AbortSignal): Promise<string | undefined> {
  const shown = (progress: Progress): void => {
    if (progress.kind === "hint_start") console.log(progress.bytes - progress.present);
    if (progress.kind === "retry") console.log(progress.reason, progress.waitMs);
  };
  const storage: HushStorage | null = null;
  try {
    const server = await connect("https://hush.example", { token: "hush_", onProgress: shown, storage, signal });
    const table = await server.open("people", { signal });
    const value: Value | null = await table.get(email);
    const many: (Value | null)[] = await table.getMany([1, 2n, "three", new Uint8Array(4), ["Smith", 1970]], { signal });
    const { queries, seconds }: Stats = table.stats;
    console.log(many.length, queries, seconds.encrypt, table.facts.epoch, server.tables[0]?.records);
    const city: unknown = value?.fields()?.["city"];
    table.close();
    return typeof city === "string" ? city : value?.text();
  } catch (error) {
    if (error instanceof HushError && error.kind === "ServerBusy") return `in ${error.retryAfterMs} ms`;
    throw error;
  }
}

/** Looks up columns whose types the program knows. */
export async function people(city: string): Promise<number | undefined> {
  await initialize(new URL(wasm, "https://app.example"));
  const table = await (await inline.connect("https://hush.example", { fetch: globalThis.fetch })).open<{ people: number }>("cities");
  const value = await table.get(city);
  // @ts-expect-error: no column is called so
  void value?.fields()?.poeple;
  const bytes: Uint8Array | null = value;
  return bytes ? value?.fields()?.people : undefined;
}

// @ts-expect-error: a value of another type
void connect("https://hush.example", { timeoutMs: "1000" });
// @ts-expect-error: a controller has a signal, and is none
void connect("https://hush.example", { signal: new AbortController() });
// @ts-expect-error: an option that there is not
void connect("https://hush.example", { tokn: "x" });
// @ts-expect-error: no code is called so
export const isOdd = (error: HushError): boolean => error.code === "odd";
