/** The view of a value: text, fields, or a dump of bytes, with buttons to copy and save it. */

import { copyButton, saveButton } from "./copy.js";
import { make } from "./dom.js";
import { bytes } from "./text.js";

/** The most bytes of a value that are shown. */
const MOST_SHOWN = 1 << 16;
/** The possible numbers of bytes on a line of a dump: the largest that fits is used. */
const PER_LINE = [16, 8, 4] as const;

/** A reviver of `JSON.parse` that receives a number's source text: JavaScript rounds long numbers. Older browsers pass no source. */
type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
declare global {
  interface JSON {
    rawJSON?(text: string): unknown;
  }
}

/** Returns the elements that show a value, and the kind of the value. */
export function valueParts(value: Uint8Array<ArrayBuffer>, hasFields: boolean, table: string): { kind: string; parts: HTMLElement[] } {
  const text = textOf(value);
  const shown = value.subarray(0, MOST_SHOWN);
  const rest = value.length - shown.length;
  const more = rest > 0 ? [make("p", { className: "help" }, `and ${bytes(rest)} more, which "Copy" and "Save" include`)] : [];
  if (text === undefined) {
    const tools = [copyButton("Copy as hex", hex(value)), saveButton("Save", value, `${table}-value.bin`)];
    return { kind: "binary", parts: [dump(shown), ...more, toolbar(tools)] };
  }
  const end = hasFields ? "json" : "txt";
  const tools = toolbar([copyButton("Copy", text), saveButton("Save", value, `${table}-value.${end}`)]);
  if (hasFields) return { kind: "fields", parts: [fields(text), tools] };
  // A letter that was cut in the middle is removed.
  const cut = rest > 0 ? new TextDecoder().decode(shown).replace(/\ufffd+$/, "") : text;
  return { kind: "text", parts: [make("pre", {}, cut), ...more, tools] };
}

function toolbar(buttons: HTMLElement[]): HTMLElement {
  return make("div", { className: "tools" }, ...buttons);
}

/** Returns the bytes as text, or undefined if they are not UTF-8 that can be shown. */
function textOf(value: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
    return /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function fields(text: string): HTMLElement {
  const list = make("dl", { className: "fields" });
  for (const [name, field] of Object.entries(JSON.parse(text, asWritten as never) as Record<string, unknown>)) {
    list.append(make("dt", {}, name), make("dd", {}, typeof field === "string" ? field : JSON.stringify(field)));
  }
  return list;
}

const asWritten: Reviver = (_, value, context) =>
  typeof value === "number" && context?.source !== undefined && JSON.rawJSON ? JSON.rawJSON(context.source) : value;

function hex(value: Uint8Array): string {
  return Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns a dump of bytes: hexadecimal digits with text beside, in lines as long as fit. */
function dump(value: Uint8Array): HTMLElement {
  const place = make("pre", { className: "dump" });
  let last = 0;
  new ResizeObserver(() => {
    const probe = make("span", {}, "0".repeat(100));
    place.append(probe);
    const style = getComputedStyle(place);
    const room = place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const letters = (room * 100) / probe.getBoundingClientRect().width;
    probe.remove();
    const perLine = PER_LINE.find((perLine) => 4 * perLine + 6 <= letters) ?? PER_LINE[2];
    if (perLine !== last) place.textContent = lines(value, (last = perLine));
  }).observe(place);
  return place;
}

function lines(value: Uint8Array, perLine: number): string {
  const lines = [];
  for (let at = 0; at < value.length; at += perLine) {
    const part = value.subarray(at, at + perLine);
    const digits = Array.from(part, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = Array.from(part, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")} ${digits.padEnd(3 * perLine)} ${text}`);
  }
  return lines.join("\n");
}
