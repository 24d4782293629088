/** Formats of numbers for people: three digits and a unit, never an exponent. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const TIMES = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]] as const;

export function number(value: number): string {
  if (Number.isInteger(value) && value < 1000) return String(value);
  return value < 999.5 ? value.toPrecision(3) : count(Number(value.toPrecision(3)));
}

export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  for (; Math.round(value) >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : number(value)} ${UNITS[unit]}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function time(seconds: number): string {
  const [unit, size] = TIMES.find(([, size]) => seconds >= 0.9995 * size) ?? TIMES[2];
  return `${number(unit === "µs" ? Math.round(seconds / size) : seconds / size)} ${unit}`;
}

export function percent(share: number): string {
  return `${(share * 100).toLocaleString("en", { maximumSignificantDigits: 2 })} %`;
}
