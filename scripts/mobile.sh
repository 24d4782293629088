#!/usr/bin/env bash
# Generates the Swift and Kotlin clients in target/mobile from the library in cargo's output folder, the first argument. Then compiles
# the Kotlin client, and tests it against the server in that folder. The second argument is the folder for tools.
#
# Swift is generated and not compiled: Debian has no Swift compiler. Python has its own package (scripts/python.sh).
set -euo pipefail
built=$1 tools=$2
crate=crates/hush-mobile out=target/mobile
library=$built/libhush_mobile.so

rm -rf "$out/swift" "$out/kotlin"
for language in swift kotlin; do
    "$built/uniffi-bindgen" generate "$library" --language "$language" --out-dir "$out/$language" --no-format --metadata-no-deps
done

# The message of an exception is its text alone: UniFFI's generated message lists all fields.
sed -i -e 's/^        val `message`: kotlin.String/        override &/' -e '/^        override val message$/,+1d' "$out/kotlin/hushdb/hush_mobile.kt"

# The Kotlin compiler and the libraries at run time, pinned by their hashes.
sums=$PWD/$crate/kotlin/SHA256SUMS
jars=$tools/kotlin-$(sha256sum "$sums" | cut -c -8)
if [ ! -d "$jars" ]; then
    command -v mvn >/dev/null || scripts/install.sh default-jdk-headless maven
    mkdir -p "$tools"
    scratch=$(mktemp -d --tmpdir="$tools") # on the same file system, so that the final move is atomic
    trap 'rm -rf "$scratch"' EXIT
    mvn --quiet --batch-mode -Dstyle.color=never --file "$crate/kotlin/pom.xml" "-DoutputDirectory=$scratch/jars" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
    (cd "$scratch/jars" && sha256sum --quiet --check "$sums")
    mv -T "$scratch/jars" "$jars"
fi
command -v java >/dev/null || scripts/install.sh default-jre-headless
classpath=$(sed "s|^[0-9a-f]*  |$jars/|" "$sums" | paste -sd :)

# Compiles only if the sources have changed: it takes a while.
sed -n '/^```kotlin$/,/^```$/{//!p}' docs/reference/clients.md >"$out/Shown.kt"
sources=("$out/kotlin/hushdb/hush_mobile.kt" "$out/Shown.kt" "$crate"/examples/*.kt "$crate"/tests/*.kt)
state=$(cat "$sums" "${sources[@]}" | sha256sum)
if [ "$(cat "$out/classes/state" 2>/dev/null)" != "$state" ]; then
    rm -rf "$out/classes"
    java -cp "$classpath" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-stdlib -no-reflect -cp "$classpath" -d "$out/classes" \
        -nowarn "${sources[@]}"
    echo "$state" >"$out/classes/state"
fi
# A script that runs a program, by its name and arguments. Tests elsewhere (tests/e2e) use it too.
cat >"$out/kotlin-run" <<SH
#!/bin/sh
exec java "-Djna.library.path=$(realpath "$built")" -cp "$PWD/$out/classes:$classpath" "\$@"
SH
chmod +x "$out/kotlin-run"
"$out/kotlin-run" ClientTestKt "${HUSHDB:-$(realpath "$built")/hushdb}"
