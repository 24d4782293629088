#!/bin/sh
# Installs the program hushdb of a release, without root: install.sh --from URL [--to FOLDER]
#
#   URL     the folder of a release: https://.., or a path of this machine
#   FOLDER  receives bin/hushdb and share/doc/hushdb; ~/.local unless told
#
# The signature of the release is verified with the public key below, by minisign or by OpenSSL 3, before anything of it is used.
# HUSHDB_RELEASE_PUBLIC_KEY replaces the key, for releases of your own.
set -eu
umask 022

key=RWT9XSifJ7yhQuo6L4QKtB961icHZcvu+DD1lV0MAjDwzcLmJCFQ0jg6 # deploy/release.pub
key=${HUSHDB_RELEASE_PUBLIC_KEY:-$key}
max_bytes=200000000 # of a file

fail() {
    echo "install: $1" >&2
    exit 1
}

main() {
    from='' to=$HOME/.local
    while [ $# -gt 0 ]; do
        case $1 in
            --from | --to) [ $# -gt 1 ] || fail "$1 needs a value" ;;
            --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 0 ;;
            *) fail "unknown option $1: install.sh --from URL [--to FOLDER]" ;;
        esac
        case $1 in --from) from=${2%/} ;; --to) to=${2%/} ;; esac
        shift 2
    done
    [ -n "$from" ] || fail "which release? install.sh --from URL [--to FOLDER]"
    machine=$(supported_machine)

    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$scratch"
    fetch SHA256SUMS
    fetch SHA256SUMS.minisig
    verify_signature

    archive=$(sed -n "s/^[0-9a-f]\{64\}  \(hushdb-[0-9][0-9A-Za-z.+-]*-$machine-linux-gnu[0-9.]*\.tar\.gz\)$/\1/p" SHA256SUMS)
    [ "$(echo "$archive" | grep -c .)" = 1 ] || fail "the release has no program for $machine: build it from the source"
    fetch "$archive"
    grep -F "  $archive" SHA256SUMS | sha256sum --check --status - ||
        fail "$archive has another checksum than SHA256SUMS says: fetch it again; if it stays so, do not use it"

    tar -xzf "$archive"
    folder=${archive%.tar.gz}
    version=$("$folder/hushdb" --version) || fail "the program does not start on this machine"
    place
    echo "installed $version: $to/bin/hushdb"
    case :$PATH: in *":$to/bin:"*) ;; *) echo "$to/bin is not in PATH: export PATH=\"$to/bin:\$PATH\"" ;; esac
}

# Prints the machine, if a release has a program for it.
supported_machine() {
    [ "$(uname -s)" = Linux ] || fail "a release has programs for Linux, not for $(uname -s): build it from the source"
    case $(uname -m) in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "a release has programs for x86_64 and aarch64, not for $(uname -m): build it from the source" ;;
    esac
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || fail "the program needs glibc 2.28 or newer, which this machine lacks: use the container, or build from the source"
    minor=${glibc#glibc 2.}
    [ "${minor%%.*}" -ge 28 ] || fail "the program needs glibc 2.28 or newer, and this machine has $glibc: use the container"
    echo "$machine"
}

# Fetches a file of the release into this folder.
fetch() {
    case $from in
        *://*)
            if command -v curl >/dev/null; then
                curl -fsSL --proto '=https,http' --max-filesize "$max_bytes" -o "$1" "$from/$1" || fail "cannot fetch $from/$1"
            elif command -v wget >/dev/null; then
                wget -q -O "$1" "$from/$1" || fail "cannot fetch $from/$1"
            else
                fail "neither curl nor wget is here: install one"
            fi
            ;;
        /*) cp "$from/$1" "$1" || fail "cannot read $from/$1" ;;
        *) fail "--from $from: give https://.. or a path that begins with /" ;;
    esac
}

# Verifies the signature of SHA256SUMS and of the comment in it.
verify_signature() {
    if command -v minisign >/dev/null; then
        minisign -V -q -P "$key" -m SHA256SUMS || fail "the signature of SHA256SUMS is not by the release key: do not use these files"
    elif openssl version 2>/dev/null | grep -q '^OpenSSL [3-9]'; then
        verify_with_openssl || fail "the signature of SHA256SUMS is not by the release key: do not use these files"
    else
        fail "install minisign or OpenSSL 3, which verifies the signature"
    fi
}

# A minisign signature has two base64 lines: the algorithm ED, the ID of the key, and a signature of the BLAKE2b hash; and a signature
# of that signature with the trusted comment.
verify_with_openssl() {
    printf '%s' "$key" | base64 -d >key.bin || return 1
    sed -n 2p SHA256SUMS.minisig | base64 -d >signature.bin || return 1
    sed -n 4p SHA256SUMS.minisig | base64 -d >over-comment.bin || return 1
    [ "$(wc -c <key.bin)" = 42 ] && [ "$(wc -c <signature.bin)" = 74 ] || return 1
    [ "$(head -c 2 signature.bin)" = ED ] || return 1
    [ "$(tail -c +3 key.bin | head -c 8 | base64)" = "$(tail -c +3 signature.bin | head -c 8 | base64)" ] || return 1
    # The key in the form of X.509: a fixed head, then 32 bytes.
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 key.bin; } >key.der
    tail -c 64 signature.bin >signature
    openssl dgst -blake2b512 -binary SHA256SUMS >hash || return 1
    { cat signature && sed -n '3s/^trusted comment: //p' SHA256SUMS.minisig | tr -d '\r\n'; } >with-comment
    openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in hash -sigfile signature >/dev/null 2>&1 || return 1
    openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in with-comment -sigfile over-comment.bin >/dev/null 2>&1
}

# Puts the files in their folders. The program that is there is replaced at once, so that it is always whole.
place() {
    mkdir -p "$to/bin" "$to/share/doc/hushdb"
    for file in LICENSE LICENSES-OF-PARTS README.md hushdb.toml; do
        cp "$folder/$file" "$to/share/doc/hushdb/"
    done
    cp "$folder/hushdb" "$to/bin/.hushdb.new"
    mv "$to/bin/.hushdb.new" "$to/bin/hushdb"
}

main "$@" # at the end: nothing runs if the script is cut off on its way
