#!/usr/bin/env bash
# Generates pandaeval_otel/_proto from proto/. An old grpcio-tools on purpose: newer ones generate code that forces a
# newer protobuf on every application. With --check it changes nothing and fails if the generated code is stale. UV may
# name uv, which takes a fraction of pip's time.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=("grpcio-tools==1.71.2" "protobuf==5.29.6")
by_uv() {
    [ -n "${UV:-}" ] && "$UV" venv --quiet --python python3 "$work/venv" &&
        UV_NATIVE_TLS=1 UV_FIND_LINKS=${PIP_FIND_LINKS:-} "$UV" pip install --quiet --python "$work/venv/bin/python" \
            --default-index "${PIP_INDEX_URL:-https://pypi.org/simple}" "${tools[@]}"
}
if ! by_uv 2>/dev/null; then
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install --quiet "${tools[@]}"
fi
mkdir -p "$work/out"
"$work/venv/bin/python" -m grpc_tools.protoc -I proto --python_out="$work" --pyi_out="$work" proto/pandaeval/v1/*.proto
# The files stay registered under pandaeval/v1/ (a bare file name could clash with other packages' in the process-wide
# pool), but the modules lie flat: a top-level package `pandaeval` would be one more name in every application.
cp "$work"/pandaeval/v1/*.py "$work"/pandaeval/v1/*.pyi "$work/out"
printf '"""Generated from proto/ by proto/generate.sh; do not edit."""\n' > "$work/out/__init__.py"
if [ "${1:-}" = "--check" ]; then
    diff -r -x __pycache__ "$work/out" pandaeval_otel/_proto && echo "generated code is up to date"
else
    rm -rf pandaeval_otel/_proto
    cp -r "$work/out" pandaeval_otel/_proto
fi
