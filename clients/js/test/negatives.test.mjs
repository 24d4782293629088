// The negative vectors (vectors/negative): a server on loopback sends them, and the client refuses or takes them as the documents say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { connect } from "../../../target/npm/node.js";

const blobs = "/v1/blobs/";
const list = '{"tables":[{"name":"t","state":"resident"}]}';
let server;
let url;
let answer; // the status and the body for a path

before(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      const { status, body } = answer(request.url);
      response.writeHead(status, { "content-length": body.length }).end(body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

function octets(pieces, texts) {
  return Buffer.concat(
    pieces.map((piece) => {
      if (typeof piece === "string") return Buffer.from(piece);
      if (piece.hex !== undefined) return Buffer.concat(Array(piece.times ?? 1).fill(Buffer.from(piece.hex, "hex")));
      if (piece.text !== undefined) return Buffer.from(piece.text.repeat(piece.times));
      let text = texts[piece.of];
      for (let at = 0; at < (piece.replace?.length ?? 0); at += 2) {
        assert.ok(text.includes(piece.replace[at]));
        text = text.replace(piece.replace[at], () => piece.replace[at + 1]);
      }
      return Buffer.from(text);
    }),
  );
}

/** Runs `call` with the input of every vector of a format, and compares how it ends. */
async function check(format, place, call) {
  const file = JSON.parse(readFileSync(new URL(`../../../vectors/negative/${format}.json`, import.meta.url), "utf8"));
  for (const vector of file.vectors) {
    const context = { ...file.context, ...vector.context };
    const input = octets(vector.input, file.texts);
    const descriptor = context.descriptor && octets(context.descriptor, file.texts);
    answer = (path) => {
      const blob = path.startsWith(blobs) && file.blobs[path.slice(blobs.length)];
      if (blob) return { status: 200, body: octets(blob, file.texts) };
      if (path === place || (place === blobs && path.startsWith(place))) return { status: context.status ?? 200, body: input };
      if (path === "/v1/tables") return { status: 200, body: list };
      if (path === "/v1/tables/t") return { status: 200, body: descriptor };
      return { status: 404, body: '{"code":"not_found","detail":"there is no such file"}' };
    };
    const ended = await call(input, context).then(
      () => "taken",
      (error) => (error.name === "HushError" ? error.code : `${error}`),
    );
    const code = vector.code ?? (vector.verdict === "valid" ? "taken" : file.code);
    assert.equal(ended, code, `${format}: ${vector.name}`);
  }
}

const opened = async () => (await connect(url, { attempts: 1 })).open("t");

test("lists of tables", () => check("tables", "/v1/tables", opened));

test("descriptors", () => check("descriptor", "/v1/tables/t", () => opened().catch(unless("not_found"))));

test("problems", () => check("problem", "/v1/tables/t/query", async () => (await opened()).get(0)));

test("responses", () =>
  check("query_response", "/v1/tables/t/query", async (_, { queries }) => (await opened()).getMany(Array(queries).fill(0))));

for (const format of ["files", "values"]) {
  test(format, () => check(format, blobs, async (_, { key }) => (await opened()).get(key ?? 0)));
}

test("keys", () => check("key", "/nowhere", async (input) => (await opened()).get(new Uint8Array(input))));

test("URLs", () => check("url", "/nowhere", (input) => connect(input.toString(), { attempts: 1 }).catch(unless("unreachable"))));

test("keys of gateways", () =>
  check("ohttp_keys", "/nowhere", (input) =>
    connect(url, { relay: "http://127.0.0.1:1", ohttpKeys: new Uint8Array(input), attempts: 1 }).catch(unless("unreachable"))));

/** Ends well with an error of what comes behind the vector: of a file that is not there, or a server. */
function unless(code) {
  return (error) => {
    if (error.code !== code) throw error;
  };
}
