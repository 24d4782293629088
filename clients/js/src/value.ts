/** The value of a record: its bytes. `Fields` are the columns of the table's values, if there are several. */
export class Value<Fields extends object = Record<string, unknown>> extends Uint8Array {
  /** Parts and copies are plain bytes. */
  static get [Symbol.species](): Uint8ArrayConstructor {
    return Uint8Array;
  }

  /** Set where the table's values have several columns. */
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
   * The columns by their names, where the values of the table have several; else null. Such a value is a JSON object, which
   * `text()` has as it is: JavaScript rounds numbers of more than 53 bits. Columns of bytes are base64.
   * The type is the program's word for what is in the table: nothing checks it.
   */
  fields(): Fields | null {
    return this.#hasFields ? (JSON.parse(this.text()) as Fields) : null;
  }
}
