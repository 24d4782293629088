#!/bin/sh
# Installs the program hushdb of a release, without root: install.sh --from URL [--to FOLDER] [--older]
#
#   URL      the folder of a release: https://.., or a path of this machine
#   FOLDER   receives bin/hushdb and share/doc/hushdb; ~/.local unless told
#   --older  allows a version below the installed one
#
# The signature of the release is verified with the public key below, by minisign or by OpenSSL 3, before anything of it is used.
# HUSHDB_RELEASE_PUBLIC_KEY replaces the key, for releases of your own.
set -eu
umask 022
LC_ALL=C
export LC_ALL

key=RWT9XSifJ7yhQuo6L4QKtB961icHZcvu+DD1lV0MAjDwzcLmJCFQ0jg6 # deploy/release.pub
usage='install.sh --from URL [--to FOLDER] [--older]'

fail() {
    echo "install: $1" >&2
    exit 1
}

main() {
    from='' to=${HOME:+$HOME/.local} older=''
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) echo "$usage" && exit 0 ;;
            --older) older=1 && shift && continue ;;
            --from | --to) [ $# -gt 1 ] || fail "$1 needs a value: $usage" ;;
            *) fail "unknown option $1: $usage" ;;
        esac
        case $1 in --from) from=${2%/} ;; --to) to=$2 ;; esac
        shift 2
    done
    [ -n "$from" ] || fail "which release? $usage"
    [ -n "$to" ] || fail "HOME is not set: give --to FOLDER"
    case $from in *://* | /*) ;; *) from=$PWD/$from ;; esac
    case $to in /*) ;; *) to=$PWD/$to ;; esac
    [ ! -d "$to/bin/hushdb" ] || fail "$to/bin/hushdb is a folder"
    for tool in base64 cat cp getconf grep gzip head mktemp mv sed sha256sum sort tail tar tr uname wc; do
        command -v "$tool" >/dev/null || fail "this script needs $tool: install it"
    done
    machine=$(supported_machine)

    new=''
    scratch=$(cd "$(mktemp -d)" && pwd)
    trap 'rm -rf "$scratch" "$new"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$scratch"
    if [ "${HUSHDB_RELEASE_PUBLIC_KEY:-}" ]; then
        key=$HUSHDB_RELEASE_PUBLIC_KEY
        echo "the public key is that of HUSHDB_RELEASE_PUBLIC_KEY"
    fi
    fetch SHA256SUMS 100000
    fetch SHA256SUMS.minisig 10000
    verify_signature
    # The signature covers the comment, which names the version.
    version=$(sed -n '3s/^trusted comment: hushdb \([0-9][0-9A-Za-z.+-]*\) [0-9a-f]\{40\}$/\1/p' SHA256SUMS.minisig)
    [ -n "$version" ] || fail "the signature names no version: it is not that of a release"
    refuse_older

    archive=hushdb-$version-$machine-linux-gnu2.28.tar.gz
    sum=$(grep -x "[0-9a-f]\{64\}  $(echo "$archive" | sed 's/\./\\./g')" SHA256SUMS) ||
        fail "the release $version has no program for $machine: build it from the source"
    fetch "$archive" 200000000
    echo "$sum" | sha256sum --check --status - ||
        fail "$archive has another checksum than SHA256SUMS says: fetch it again; if it stays so, do not use it"
    tar -xzf "$archive"
    place "${archive%.tar.gz}"
    echo "installed hushdb $version: $to/bin/hushdb"
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
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) ||
        fail "the program needs glibc 2.28 or newer, which this machine lacks: use the container, or build from the source"
    minor=${glibc#glibc 2.}
    [ "${minor%%.*}" -ge 28 ] || fail "the program needs glibc 2.28 or newer, and this machine has $glibc: use the container"
    echo "$machine"
}

# Fetches a file of the release into this folder: fetch NAME MAX_BYTES.
fetch() {
    rm -f failed
    { download "$from/$1" || : >failed; } | head -c $(($2 + 1)) >"$1"
    [ "$(wc -c <"$1")" -le "$2" ] || fail "$from/$1 is longer than $2 bytes: it is not that of a release"
    [ ! -e failed ] || fail "cannot fetch $from/$1"
}

download() {
    case $1 in
        /*) cat "$1" ;;
        *)
            if command -v curl >/dev/null; then
                curl -fsSL --proto '=https,http' --connect-timeout 30 --speed-limit 1 --speed-time 60 "$1"
            elif command -v wget >/dev/null; then
                wget -q --timeout=60 --tries=2 -O - "$1"
            else
                fail "neither curl nor wget is here: install one"
            fi
            ;;
    esac
}

# Verifies the signature of SHA256SUMS and of the comment in it. Both verifiers get the one form of a signature that releases have.
verify_signature() {
    forged="the signature of SHA256SUMS is not by the release key: do not use these files"
    echo "$key" | grep -qx 'RW[Q-T][A-Za-z0-9+/]\{53\}' || fail "the public key $key is malformed"
    [ "$(wc -l <SHA256SUMS.minisig)" = 4 ] || fail "$forged"
    check_line 1 'untrusted comment: [ -~]*'
    check_line 2 'RU[Q-T][A-Za-z0-9+/]\{96\}='
    check_line 3 'trusted comment: [ -~]*'
    check_line 4 '[A-Za-z0-9+/]\{86\}=='
    if command -v minisign >/dev/null; then
        minisign -V -H -q -P "$key" -m SHA256SUMS || fail "$forged"
    elif openssl version 2>/dev/null | grep -q '^OpenSSL [3-9]'; then
        openssl dgst -blake2b512 -binary SHA256SUMS >hash || fail "this OpenSSL has no BLAKE2b: install minisign"
        verify_with_openssl || fail "$forged"
    else
        fail "install minisign or OpenSSL 3, which verifies the signature"
    fi
}

check_line() {
    sed -n "$1p" SHA256SUMS.minisig | grep -qx "$2" || fail "$forged"
}

# A minisign signature has the algorithm ED, the ID of the key, and a signature of the BLAKE2b hash; then a signature of that signature
# with the trusted comment.
verify_with_openssl() {
    echo "$key" | base64 -d >key.bin
    sed -n 2p SHA256SUMS.minisig | base64 -d >signature.bin
    sed -n 4p SHA256SUMS.minisig | base64 -d >over-comment
    [ "$(tail -c +3 key.bin | head -c 8 | base64)" = "$(tail -c +3 signature.bin | head -c 8 | base64)" ] || return 1
    # The key in the form of X.509: a fixed head, then 32 bytes.
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 key.bin; } >key.der
    tail -c 64 signature.bin >signature
    { cat signature && sed -n '3s/^trusted comment: //p' SHA256SUMS.minisig | tr -d '\n'; } >with-comment
    is_signed hash signature && is_signed with-comment over-comment
}

is_signed() {
    openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

# Refuses a version below the installed one: a mirror could offer an old release, whose signature is right.
refuse_older() {
    [ -z "$older" ] && [ -x "$to/bin/hushdb" ] || return 0
    installed=$("$to/bin/hushdb" --version 2>/dev/null | sed -n 's/^hushdb \([0-9][0-9A-Za-z.+-]*\)$/\1/p') || return 0
    [ "$(printf '%s\n%s\n' "$installed" "$version" | sort -V | tail -n 1)" = "$version" ] ||
        fail "hushdb $installed is installed, and the release has $version, which is older: add --older if you want that"
}

# Puts the files of a folder in their places. The program that is there is replaced in one step, by one that starts.
place() {
    mkdir -p "$to/bin" "$to/share/doc/hushdb"
    new=$(mktemp "$to/bin/.hushdb.XXXXXX")
    cp "$1/hushdb" "$new"
    chmod 755 "$new"
    said=$("$new" --version) || fail "the program does not start on this machine, or $to forbids programs"
    [ "$said" = "hushdb $version" ] || fail "the program says $said, and the release is $version"
    mv -f "$new" "$to/bin/hushdb"
    for file in LICENSE LICENSES-OF-PARTS README.md hushdb.service hushdb.sysusers.conf hushdb.toml; do
        cp "$1/$file" "$to/share/doc/hushdb/"
    done
}

main "$@" # at the end: nothing runs if the script is cut off on its way
