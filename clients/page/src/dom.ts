/** Functions that make elements. All content is set as text, never as markup. */

/** Returns the element of the page with this id. */
export function the<T extends Element = HTMLElement>(id: string): T {
  return document.getElementById(id) as unknown as T;
}

type Content = Node | string;

/** Returns a new element. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...content: Content[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

/** Returns a row of a table: the head, then the cells. */
export function row(head: Content, cells: Content[], className = ""): HTMLTableRowElement {
  const numbers = cells.map((cell) => make("td", { className: typeof cell === "string" ? "number" : "" }, cell));
  return make("tr", { className }, make("th", { scope: "row" }, head), ...numbers);
}

/** Returns an entry of a legend. */
export function entry(colour: string, ...content: Content[]): HTMLLIElement {
  const mark = make("i", { className: "mark" });
  mark.style.background = colour;
  return make("li", {}, mark, ...content);
}
