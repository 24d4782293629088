#!/usr/bin/env bash
# Installs the packages of PACKAGE's lock file into FOLDER, unless PROGRAM is there and current: `npm_tools.sh PACKAGE FOLDER PROGRAM`.
set -euo pipefail
package=$1 folder=$2 program=$3
if cmp -s "$package/package-lock.json" "$folder/package-lock.json" && [ -e "$folder/node_modules/$program" ]; then
    exit 0
fi
mkdir -p "$folder"
cp "$package/package.json" "$package/package-lock.json" "$folder"
npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error
