/** The value of a record, as bytes. `Fields` is the type of its columns, if the table's values have several. */
export class Value<Fields extends object = Record<string, unknown>> extends Uint8Array {
  /** The constructor of slices and copies, which are plain bytes. */
  static get [Symbol.species](): Uint8ArrayConstructor {
    return Uint8Array;
  }

  /** Whether the table's values have several columns. */
  #hasFields = false;

  /** @internal */
  static of_<Fields extends object>(bytes: Uint8Array<ArrayBuffer>, hasFields: boolean): Value<Fields> {
    const value = new Value<Fields>(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    value.#hasFields = hasFields;
    return value;
  }

  /** Returns the value as text. Throws a `TypeError` if it is not UTF-8. */
  text(): string {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this);
  }

  /**
   * Returns the columns by their names, or null if the table's values are plain bytes. JavaScript rounds numbers of more than 53 bits:
   * `text()` returns the JSON object unrounded. Columns of bytes are base64. The type `Fields` is not checked.
   */
  fields(): Fields | null {
    return this.#hasFields ? (JSON.parse(this.text()) as Fields) : null;
  }
}
