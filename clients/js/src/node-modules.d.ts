// Types of the parts of Node's modules that are used, so that the package does not depend on Node's types.
declare module "node:crypto" {
  export const webcrypto: Crypto;
}

declare module "node:process" {
  export const versions: { readonly node: string };
}

declare module "node:fs/promises" {
  export function readFile(path: URL): Promise<Uint8Array<ArrayBuffer>>;
}
