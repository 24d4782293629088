#!/usr/bin/env bash
# Builds the npm package @hushdb/client in target/npm, with the archive of `npm pack`. The first argument is the program wasm-bindgen.
set -euo pipefail
bindgen=$1
out=target/npm tools=target/npm-tools
max_bytes=503000 # the limit of all that a browser loads, gzipped

# SIMD128 is in every browser since Safari 16.4 and in Node 16.4. It halves the time to hash a hint, and takes up to a tenth off
# encryption; a second build without it would double the package.
# Panic messages contain source paths: the flags hide the paths of this machine.
home=${CARGO_HOME:-$HOME/.cargo}
flags="-C target-feature=+simd128 --remap-path-prefix=$PWD=/hushdb --remap-path-prefix=$home=/cargo"
RUSTFLAGS="${RUSTFLAGS:-} $flags" scripts/wasm.sh --package hush-wasm --profile npm

rm -rf "$out"
mkdir -p "$out"
"$bindgen" --target web --omit-default-module-path --remove-name-section --remove-producers-section --out-name hush --out-dir "$out/wasm" \
    target/wasm/wasm32-unknown-unknown/npm/hush_wasm.wasm
if grep -aqF -e "$PWD/" -e "$home/" "$out/wasm/hush_bg.wasm"; then
    echo "npm: the module has paths of this machine: strings $out/wasm/hush_bg.wasm | grep -F '$home/'" >&2
    exit 1
fi
# The module as text, for the inlined build, and the types of that text and of a bundler's import of the file, which is its URL.
{ printf 'export default "'; gzip -9nc "$out/wasm/hush_bg.wasm" | base64 -w0; printf '";\n'; } >"$out/wasm/inline.js"
printf 'declare const text: string;\nexport default text;\n' | tee "$out/wasm/inline.d.ts" >"$out/wasm/hush.wasm.d.ts"
cp clients/js/package.json clients/js/README.md LICENSE "$out"

scripts/npm_tools.sh clients/js "$tools" .bin/tsc
"$tools/node_modules/.bin/tsc" -p clients/js
npm pack --silent --pack-destination "$out" "./$out" >/dev/null

# A page loads the module as a file or inlined: the longer one counts.
bytes=0
for without in inline.js hush_bg.wasm; do
    files=$(find "$out" \( -name '*.js' -o -name '*.wasm' \) ! -path "$out/wasm/$without" -exec gzip -9 -c {} \; | wc -c)
    bytes=$((files > bytes ? files : bytes))
done
echo "npm: $out, $bytes bytes gzipped of at most $max_bytes, $(basename "$out"/*.tgz)"
if [ "$bytes" -gt "$max_bytes" ]; then
    echo "npm: that is too long for a page to load: see what has grown with 'twiggy' or 'wasm-opt --metrics'" >&2
    exit 1
fi
