/** A plot of the tables that a table's records could have: bytes of a look-up against server time, as `hushdb plan --plot` draws it. */

import { copyButton } from "./copy.js";
import { make, row, the } from "./dom.js";
import { colourOf, named } from "./protocols.js";
import { bytes, count, number, time } from "./text.js";

/** An offer of the planner (`hushdb plan --json`). */
interface Offer {
  protocol: string;
  preset: string;
  bytes_up: number;
  bytes_down: number;
  setup_bytes_up: number;
  setup_bytes_down: number;
  server_bytes: number;
  seconds: number;
  queries_per_second: number;
  linkable: string;
  options: string;
}

interface Plan {
  machine: { name: string; threads: number; is_this: boolean };
  lookups: number;
  table: Offer;
  offers: Offer[];
}

const SIZE = { height: 400, left: 80, right: 32, top: 16, bottom: 52 };
/** The least and greatest width of the plot. */
const WIDTHS = [300, 1000] as const;
/** The least distance between ticks of the x axis and of the y axis. */
const TICK = { width: 90, height: 50 };
/** The radii of the dots with the least memory and with the most. */
const RADII = [4, 14] as const;

/** A function that redraws the plot, if there is one. */
let drawn = () => {};
new ResizeObserver(() => drawn()).observe(the("plot"));

/** Draws and shows the plan of a table. Does nothing if the server has no plan, or `isWanted` has become false. */
export async function showPlan(
  table: string,
  token: string | undefined,
  by: "key" | "position",
  isWanted: () => boolean,
): Promise<void> {
  const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(new URL(`../v1/tables/${encodeURIComponent(table)}/plan`, import.meta.url), { headers });
  if (!response.ok) return;
  const plan = (await response.json()) as Plan;
  if (!isWanted()) return;
  // The element is shown first, because its width sets the width of the drawing.
  the("plan").hidden = false;
  const { machine, lookups } = plan;
  const where = machine.is_this
    ? `Times are of this machine (${machine.threads} threads)`
    : `Times are of another machine (${machine.name}, ${machine.threads} threads) until "hushdb plan" has measured this one`;
  the("plan-help").textContent =
    `Each of the ${count(plan.offers.length)} dots is a way to build this table, and the ring is the table as it is. Further left: ` +
    `fewer bytes. Further down: less time of the server. Smaller: less memory. What is sent once counts as shared by ${lookups} ` +
    `look-ups. ${where}.`;
  drawn = () => drawDots(plan);
  drawn();
  const protocols = [...new Set([...plan.offers, plan.table].map(({ protocol }) => protocol))].sort();
  const ring = make("span", { className: "named" }, make("i", { className: "mark ring" }), `this table: ${plan.table.protocol}`);
  the("plot-legend").replaceChildren(...[...protocols.map((name) => named(name)), ring].map((mark) => make("li", {}, mark)));
  const rows = [...plan.offers].sort((a, b) => a.seconds - b.seconds).map((offer) => line(offer, by, ""));
  the("offers").replaceChildren(line(plan.table, by, "own"), ...rows);
}

function line(offer: Offer, by: "key" | "position", className: string): HTMLTableRowElement {
  const once = offer.setup_bytes_up + offer.setup_bytes_down;
  const linked = offer.linkable === "lookups" ? ", links look-ups" : "";
  const command = `hushdb build INPUT ${by === "key" ? "--key COLUMN " : ""}${offer.options} --out FOLDER`;
  const cells = [
    bytes(offer.bytes_up),
    bytes(offer.bytes_down),
    once === 0 ? "nothing" : bytes(once) + linked,
    time(offer.seconds),
    number(offer.queries_per_second),
    bytes(offer.server_bytes),
    make("div", { className: "command" }, copyButton("Copy", command), make("code", {}, command)),
  ];
  return row(named(offer.protocol, className === "own" ? `this table: ${offer.protocol}` : offer.protocol), cells, className);
}

function drawDots({ offers, table, lookups }: Plan): void {
  const all = [...offers, table];
  const sent = (offer: Offer) =>
    offer.bytes_up + offer.bytes_down + (offer.setup_bytes_up + offer.setup_bytes_down) / lookups;
  const plot = the<SVGSVGElement>("plot");
  const width = Math.min(Math.max(plot.clientWidth, WIDTHS[0]), WIDTHS[1]);
  const right = width - SIZE.right;
  const bottom = SIZE.height - SIZE.bottom;
  const x = scale(all.map(sent), 2, SIZE.left, right, TICK.width);
  const y = scale(all.map(({ seconds }) => seconds), 10, bottom, SIZE.top, TICK.height);
  const memory = all.map(({ server_bytes }) => Math.log(Math.max(server_bytes, 1)));
  const [least, most] = [Math.min(...memory), Math.max(...memory)];
  const radius = ({ server_bytes }: Offer) =>
    RADII[0] + ((RADII[1] - RADII[0]) * (Math.log(Math.max(server_bytes, 1)) - least)) / Math.max(most - least, 1);

  plot.setAttribute("viewBox", `0 0 ${width} ${SIZE.height}`);
  plot.replaceChildren();
  for (const at of x.ticks) {
    plot.append(svg("line", { x1: x.at(at), x2: x.at(at), y1: SIZE.top, y2: bottom, class: "grid" }));
    plot.append(label(bytes(at), x.at(at), bottom + 18, "middle"));
  }
  for (const at of y.ticks) {
    plot.append(svg("line", { x1: SIZE.left, x2: right, y1: y.at(at), y2: y.at(at), class: "grid" }));
    plot.append(label(time(at), SIZE.left - 8, y.at(at) + 4, "end"));
  }
  plot.append(label("bytes of a look-up, sent and received", (SIZE.left + right) / 2, SIZE.height - 10, "middle"));
  const title = label("the server's time for a look-up", 0, 0, "middle");
  title.setAttribute("transform", `translate(14 ${(SIZE.top + bottom) / 2}) rotate(-90)`);
  plot.append(title);
  // The largest dots are drawn first, so that none hides another.
  for (const offer of [...offers].sort((a, b) => b.server_bytes - a.server_bytes)) {
    const dot = svg("circle", { cx: x.at(sent(offer)), cy: y.at(offer.seconds), r: radius(offer), fill: colourOf(offer.protocol), class: "dot" });
    const title = svg("title", {});
    title.textContent = `${offer.protocol}, ${offer.preset}: ${bytes(sent(offer))}, ${time(offer.seconds)}, ${bytes(offer.server_bytes)}`;
    dot.append(title);
    plot.append(dot);
  }
  plot.append(svg("circle", { cx: x.at(sent(table)), cy: y.at(table.seconds), r: radius(table) + 4, fill: colourOf(table.protocol), class: "own" }));
  const best = Math.min(...offers.map(sent));
  plot.setAttribute(
    "aria-label",
    `${offers.length} tables. This one: ${table.protocol}, ${bytes(sent(table))} a look-up and ${time(table.seconds)} of the server. ` +
      `They go down to ${bytes(best)}, and to ${time(Math.min(...offers.map(({ seconds }) => seconds)))}. All are in the table below.`,
  );
}

interface Scale {
  at(value: number): number;
  ticks: number[];
}

/** Returns a logarithmic scale with ticks at powers of `base`, no closer than `tick`. */
function scale(values: number[], base: number, from: number, to: number, tick: number): Scale {
  const log = (value: number) => Math.log(value) / Math.log(base);
  const room = 0.1 * Math.max(log(Math.max(...values)) - log(Math.min(...values)), 1);
  const [low, high] = [log(Math.min(...values)) - room, log(Math.max(...values)) + room];
  const step = Math.max(1, Math.ceil(((high - low) * tick) / Math.abs(to - from)));
  const ticks = [];
  for (let power = Math.ceil(low / step) * step; power <= high; power += step) ticks.push(base ** power);
  return { at: (value) => from + ((to - from) * (log(value) - low)) / (high - low), ticks };
}

function label(text: string, x: number, y: number, anchor: string): SVGElement {
  const element = svg("text", { x, y, "text-anchor": anchor });
  element.textContent = text;
  return element;
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}
