#!/usr/bin/env bash
# What a package's lock file names, in a folder beside the tree: `npm_tools.sh PACKAGE FOLDER PROGRAM`. There is nothing to do mostly.
set -euo pipefail
package=$1 folder=$2 program=$3
if cmp -s "$package/package-lock.json" "$folder/package-lock.json" && [ -e "$folder/node_modules/$program" ]; then
    exit 0
fi
mkdir -p "$folder"
cp "$package/package.json" "$package/package-lock.json" "$folder"
npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error
