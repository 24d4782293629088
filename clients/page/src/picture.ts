/** A picture of bytes with one dot for each byte. */

import { bytes, percent } from "./text.js";

/** The colours of the bytes 0, 127 and 255, between which the others are interpolated; distinct on any background. */
const COLOURS = [
  [11, 29, 58],
  [42, 127, 158],
  [226, 246, 232],
] as const;
/** The possible widths of a picture, in dots. */
const WIDTHS = [16, 32, 64, 128, 256, 512];

/** Draws `body`, the beginning of a body of `total` bytes. Returns a description of the picture in words. */
export function draw(canvas: HTMLCanvasElement, body: Uint8Array, total: number): string {
  // The picture is about twice as wide as high.
  const width = WIDTHS.find((width) => (width * width) / 2 >= body.length) ?? WIDTHS[WIDTHS.length - 1]!;
  canvas.width = width;
  canvas.height = Math.max(1, Math.ceil(body.length / width));
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  body.forEach((byte, at) => image.data.set([...colour(byte), 255], 4 * at));
  context.putImageData(image, 0, 0);
  const part = body.length < total ? `the first ${bytes(body.length)} of ` : "";
  const words = `${part}${bytes(total)}, a dot for each byte; ${evenness(body)}`;
  canvas.setAttribute("aria-label", `The request as a picture: ${words}`);
  return words;
}

function colour(byte: number): [number, number, number] {
  const place = (byte / 255) * (COLOURS.length - 1);
  const from = Math.min(Math.floor(place), COLOURS.length - 2);
  const [low, high] = [COLOURS[from]!, COLOURS[from + 1]!];
  const mixed = (channel: 0 | 1 | 2) => low[channel] + (high[channel] - low[channel]) * (place - from);
  return [mixed(0), mixed(1), mixed(2)];
}

/** Returns a text with the entropy of the bytes, beside the entropy of equally many random bytes. */
function evenness(body: Uint8Array): string {
  if (body.length === 0) return "empty";
  const counts = new Array<number>(256).fill(0);
  for (const byte of body) counts[byte]! += 1;
  const shares = counts.filter((count) => count > 0).map((count) => count / body.length);
  const entropy = shares.reduce((sum, share) => sum - share * Math.log2(share), 0);
  return `${entropy.toFixed(2)} bits of entropy a byte, where random bytes have ${ofRandom(body.length).toFixed(2)}`;
}

/** Returns the expected entropy of `length` random bytes, in bits per byte. */
function ofRandom(length: number): number {
  if (length >= 2048) return 8 - 255 / (2 * length * Math.LN2);
  // `share` is the binomial probability that one of the 256 values occurs `times` times.
  let share = (255 / 256) ** length;
  let sum = 0;
  for (let times = 0; times <= length; times++) {
    if (times > 1) sum += share * times * Math.log2(times);
    share *= (length - times) / (times + 1) / 255;
  }
  return Math.log2(length) - (256 * sum) / length;
}

/** Returns a text with the share of bytes that are equal at the same position in both bodies. */
export function alike(one: Uint8Array, other: Uint8Array): string {
  const length = Math.min(one.length, other.length);
  let same = 0;
  for (let at = 0; at < length; at++) if (one[at] === other[at]) same += 1;
  return percent(length === 0 ? 1 : same / length);
}
