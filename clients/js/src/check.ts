import { HushError } from "./error.js";
import type { CallOptions, ConnectOptions, LookUpOptions } from "./options.js";

/** A kind of option: its name in messages, and a test of whether a value has this kind. */
type Rule = readonly [words: string, holds: (value: unknown) => boolean];
type Rules<Options> = { readonly [Name in keyof Options]-?: Rule };

/** The longest time of a timer, in milliseconds. */
const MAX_MS = 2 ** 31 - 1;

const text: Rule = ["a string", (value) => typeof value === "string"];
const call: Rule = ["a function", isFunction];
const signal: Rule = ["an AbortSignal", (value) => has(value, "addEventListener") && "aborted" in (value as object)];
const whole = (least: number, most: number): Rule => [
  `a whole number from ${least} to ${most}`,
  (value) => Number.isInteger(value) && least <= (value as number) && (value as number) <= most,
];

/** The kinds of the options of `connect`. */
export const CONNECT: Rules<ConnectOptions> = {
  token: text,
  signal,
  timeoutMs: whole(1, MAX_MS),
  onProgress: call,
  storage: ["a HushStorage, or null", (value) => value === null || has(value, "hint", "keepHint", "forgetHint", "seed")],
  maxHint: whole(0, Number.MAX_SAFE_INTEGER),
  maxQueries: whole(1, 256),
  attempts: whole(1, 1000),
  lookupsPerKey: whole(1, 2 ** 20),
  relay: text,
  ohttpKeys: ["a Uint8Array", (value) => value instanceof Uint8Array],
  trust: text,
  epoch: text,
  allowWeak: text,
  fetch: call,
};

/** The kinds of the options of calls. */
export const CALL: Rules<CallOptions> = { signal };

/** The names of the rows that a look-up in a sorted table finds. */
const ROWS = ["at-or-below", "at-or-above", "prefix", "in-range"];

/** The kinds of the options of look-ups. */
export const LOOK_UP: Rules<LookUpOptions> = { signal, rows: [`one of ${ROWS.join(", ")}`, (value) => ROWS.includes(value as string)] };

/** Throws a `HushError` with code `options` if `options` has an unknown name, such as a misspelt one, or a value of the wrong kind. */
export function check<Options extends object>(name: string, rules: Rules<Options>, options: Options): void {
  const names = Object.keys(rules).join(", ");
  if (typeof options !== "object" || options === null) {
    throw new HushError("options", `the options of ${name} are an object: { ${names} }`);
  }
  // `in` includes inherited names: an AbortSignal given instead of { signal } has no others.
  for (const option in options) {
    if (!Object.keys(rules).includes(option)) throw new HushError("options", `${name} has no option '${option}': it has ${names}`);
    const [words, holds] = rules[option];
    if (options[option] !== undefined && !holds(options[option])) throw new HushError("options", `the option '${option}' is ${words}`);
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

/** Returns whether a value is an object with all of these methods. */
function has(value: unknown, ...methods: string[]): boolean {
  const object = value as Record<string, unknown>;
  return typeof value === "object" && value !== null && methods.every((method) => isFunction(object[method]));
}
