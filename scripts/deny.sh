#!/usr/bin/env bash
# deny.sh CARGO_DENY VERDICT: checks the product, then the fuzz targets: licences, bans and sources always; advisories with the
# database of HUSHDB_ADVISORY_DB (a checkout, for machines without a network), else with what can be fetched, else with what was
# fetched last (cargo's home, which CI can keep).
#
# Where there is a database, an advisory is an error, and in CI (the variable CI) a database of more than 60 days is one, too. Where
# there is none at all, the check cannot be made: an error with HUSHDB_REQUIRE_ADVISORIES=1. The file VERDICT gets one line that says
# whether advisories were checked: `make test` ends with it.
set -euo pipefail
deny=$1
verdict=$2
max_days=60
source=https://github.com/rustsec/advisory-db
cached=advisory-db-3157b0e258782691 # what cargo-deny calls its clone of that

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check() { # CONFIG [OPTION..] -- WHAT..
    local config=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    "$deny" --log-level error --config "$config" "${options[@]}" check "$@"
    "$deny" --log-level error --manifest-path fuzz/Cargo.toml --all-features --config "$config" "${options[@]}" check "$@"
}

committed() { # DATABASE: when its last commit was made, in seconds; fails if it is not a whole clone
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
    # Where cargo-deny looks for it; how old it may be was judged above.
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
