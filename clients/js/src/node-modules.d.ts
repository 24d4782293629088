// What of Node's modules is used; the package has no types of Node's to lean on.
declare module "node:crypto" {
  export const webcrypto: Crypto;
}

declare module "node:process" {
  export const versions: { readonly node: string };
}

declare module "node:fs/promises" {
  export function readFile(path: URL): Promise<Uint8Array<ArrayBuffer>>;
}
