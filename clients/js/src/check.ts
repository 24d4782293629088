import { HushError } from "./error.js";
import type { CallOptions, ConnectOptions } from "./options.js";

/** A kind of option: its words, and whether a value is of it. */
type Rule = readonly [words: string, holds: (value: unknown) => boolean];
type Rules<Options> = { readonly [Name in keyof Options]-?: Rule };

/** The longest time of a timer. */
const MAX_MS = 2 ** 31 - 1;

const text: Rule = ["a string", (value) => typeof value === "string"];
const call: Rule = ["a function", isFunction];
const signal: Rule = ["an AbortSignal", (value) => has(value, "addEventListener") && "aborted" in (value as object)];
const whole = (least: number, most: number): Rule => [
  `a whole number from ${least} to ${most}`,
  (value) => Number.isInteger(value) && least <= (value as number) && (value as number) <= most,
];

/** The options of `connect`. */
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

/** The options of calls. */
export const CALL: Rules<CallOptions> = { signal };

/** Refuses options that are not there, as a name with a letter too few, and values of another type. */
export function check<Options extends object>(name: string, rules: Rules<Options>, options: Options): void {
  const names = Object.keys(rules).join(", ");
  if (typeof options !== "object" || options === null) {
    throw new HushError("options", `the options of ${name} are an object: { ${names} }`);
  }
  // With what is inherited: an AbortSignal in place of { signal } has nothing else.
  for (const option in options) {
    if (!Object.keys(rules).includes(option)) throw new HushError("options", `${name} has no option '${option}': it has ${names}`);
    const [words, holds] = rules[option];
    if (options[option] !== undefined && !holds(options[option])) throw new HushError("options", `the option '${option}' is ${words}`);
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

/** Returns whether a value is an object with these methods. */
function has(value: unknown, ...methods: string[]): boolean {
  const object = value as Record<string, unknown>;
  return typeof value === "object" && value !== null && methods.every((method) => isFunction(object[method]));
}
