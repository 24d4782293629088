#!/usr/bin/env bash
# Builds the Python package as a wheel in target/wheels, installs it into the project's environment, and runs its tests and examples
# there. FEATURES are the features of the package: cuda for GPUs (`make cuda` first). With PROFILE=dev, no wheel is built: the tests use
# the library in target/debug, which `unit` compiles with all features.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release} features=${FEATURES:-}
[ "$profile" != dev ] || features=emulator # the feature that the tests expect
package=$PWD/crates/hush-py environment=$PWD/target/python wheels=$PWD/target/wheels
python3 -c 'import ensurepip' 2>/dev/null || scripts/install.sh python3-venv
[ -x "$environment/bin/pip" ] || python3 -m venv "$environment"
pip=("$environment/bin/pip" install --quiet --disable-pip-version-check)
# The pinned tools that build and test the package, from its pyproject.toml.
wants=$("$environment/bin/python" - "$package/pyproject.toml" <<'PYTHON'
import re, sys
text = open(sys.argv[1]).read()
print(*re.findall(r'"([a-z0-9-]+==[^"]+)"', text))
PYTHON
)
# shellcheck disable=SC2086 # a list of words
"${pip[@]}" $wants
rm -rf "$wheels"
if [ "$profile" = dev ]; then
    site=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$site"/hushdb "$site"/hushdb-*.dist-info
    cp -r "$package/python/hushdb" "$site"
    cp target/debug/libhushdb_native.so "$site/hushdb/_native.abi3.so"
    printf '#!%s\nimport sys\nfrom hushdb.__main__ import main\nsys.exit(main())\n' "$environment/bin/python" >"$environment/bin/hushdb"
    chmod +x "$environment/bin/hushdb"
else
    "$environment/bin/maturin" build --quiet --locked --profile "$profile" --features "$features" --manifest-path "$package/Cargo.toml" \
        --out "$wheels" --target-dir "$PWD/target"
    "${pip[@]}" --no-deps --force-reinstall "$wheels"/hushdb-*.whl
fi
# The tests run outside the package's folder, so that they import the installed package. Their folders take 3 GB of the disk: only those of
# tests that failed are kept.
cd "$package/tests"
FEATURES=$features "$environment/bin/python" -m pytest --quiet -p no:cacheprovider -o tmp_path_retention_policy=failed "$@" .
for example in "$package"/examples/*.py; do
    "$environment/bin/python" "$example" >/dev/null
done
[ "$profile" = dev ] || ls "$wheels"
