#!/usr/bin/env bash
# deny.sh CARGO_DENY VERDICT: checks the product, then the fuzz targets and the peers of the benchmarks. Licences, bans and sources are always checked. The database of
# advisories is HUSHDB_ADVISORY_DB (a checkout, for machines without a network); otherwise a fresh download; otherwise the last
# download in cargo's home, which CI can keep.
#
# With a database, an advisory is an error. In CI (the variable CI), a database older than 60 days is an error too. Without any
# database, the check is skipped, or is an error with HUSHDB_REQUIRE_ADVISORIES=1. The file VERDICT gets one line that says whether
# advisories were checked; `make test` prints it at the end.
set -euo pipefail
deny=$1
verdict=$2
max_days=60
source=https://github.com/rustsec/advisory-db
cached=advisory-db-3157b0e258782691 # cargo-deny's name for its clone of $source

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() { # CONFIG [OPTION..] -- WHAT..
    local config=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    "$deny" --log-level error --config "$config" "${options[@]}" check "$@"
    for manifest in fuzz/targets bench/peers bench/peers/chalamet; do
        "$deny" --log-level error --manifest-path "$manifest/Cargo.toml" --all-features --config "$config" "${options[@]}" check "$@"
    done
}

committed() { # DATABASE: prints the time of its last commit, in seconds; fails if it is not a whole clone
    [ -d "$1/crates" ] && [ -e "$1/.git" ] && git -c safe.directory='*' -C "$1" log -1 --format=%ct 2>/dev/null
}

check_offline() { # DATABASE WHAT_TO_DO
    local since days
    since=$(committed "$1")
    days=$((($(date +%s) - since) / 86400))
    if [ -n "${CI:-}" ] && [ "$days" -gt "$max_days" ]; then
        echo "advisories: $1 is $days days old, at most $max_days in CI: $2" >&2
        exit 1
    fi
    # cargo-deny looks for its clone under this name. Its own limit of age is lifted: the age was checked above.
    ln -s "$(realpath "$1")" "$scratch/$cached"
    sed "s|^\[advisories\]\$|&\ndb-path = \"$scratch\"\nmaximum-db-staleness = \"P99Y\"|" deny.toml >"$scratch/deny.toml"
    check "$scratch/deny.toml" --offline -- advisories
    conclude "checked, with those of $(date -u -d "@$since" +%F)"
}

conclude() { # LINE
    echo "advisories: $1" | tee "$verdict"
}

mkdir -p "$(dirname "$verdict")"
echo "advisories: NOT CHECKED, the check failed" >"$verdict"

check "$PWD/deny.toml" -- --hide-inclusion-graph licenses bans sources
clone=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/$cached
if [ -n "${HUSHDB_ADVISORY_DB:-}" ]; then
    if ! committed "$HUSHDB_ADVISORY_DB" >/dev/null; then
        echo "advisories: HUSHDB_ADVISORY_DB=$HUSHDB_ADVISORY_DB is no checkout of $source: clone it there" >&2
        exit 1
    fi
    check_offline "$HUSHDB_ADVISORY_DB" "git pull there"
elif timeout 60 "$deny" --log-level off fetch db 2>/dev/null; then
    check "$PWD/deny.toml" -- advisories
    conclude "checked, with what was fetched today"
elif committed "$clone" >/dev/null; then
    check_offline "$clone" "run 'make deny' with a network, remove it, or set HUSHDB_ADVISORY_DB to a newer checkout of $source"
else
    conclude "NOT CHECKED, $source cannot be fetched and there is no earlier clone; set HUSHDB_ADVISORY_DB to a checkout"
    [ "${HUSHDB_REQUIRE_ADVISORIES:-}" != 1 ]
fi
