/** Numbers and bytes as people read them. */

const UNITS = ["KiB", "MiB", "GiB", "TiB"];

export function bytes(count: number): string {
  let value = count;
  let unit = "B";
  for (const larger of UNITS) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return `${unit === "B" ? value : value.toPrecision(3)} ${unit}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function time(seconds: number): string {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  return `${Math.round(seconds * 1e6)} µs`;
}

export function percent(share: number): string {
  return `${(share * 100).toPrecision(2)} %`;
}

/** Bytes as text, if they are UTF-8 that can be shown; else as hex, 16 a line. */
export function shown(value: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
    if (!/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(text)) return text;
  } catch {
    // Not text.
  }
  return hex(value);
}

function hex(value: Uint8Array): string {
  const lines = [];
  for (let at = 0; at < value.length; at += 16) {
    const line = Array.from(value.subarray(at, at + 16), (byte) => byte.toString(16).padStart(2, "0"));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${line.join(" ")}`);
  }
  return lines.join("\n");
}
