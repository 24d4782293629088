/** The value of a record: its bytes. */
export class Value extends Uint8Array {
  /** Parts and copies are plain bytes. */
  static get [Symbol.species](): Uint8ArrayConstructor {
    return Uint8Array;
  }

  /** Set where the table's values have several columns. */
  #hasFields = false;

  /** @internal */
  static of_(bytes: Uint8Array<ArrayBuffer>, hasFields: boolean): Value {
    const value = new Value(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    value.#hasFields = hasFields;
    return value;
  }

  /** The value as text. Throws a `TypeError` if it is not UTF-8. */
  text(): string {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this);
  }

  /**
   * The columns by their names, where the values of the table have several; else null. Such a value is a JSON object, which
   * `text()` has as it is: JavaScript rounds numbers of more than 53 bits. Columns of bytes are base64.
   */
  fields(): Record<string, unknown> | null {
    return this.#hasFields ? (JSON.parse(this.text()) as Record<string, unknown>) : null;
  }
}
