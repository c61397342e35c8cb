#!/usr/bin/env bash
# Fetches the plotting library that pages carry from npm, at the version named here. Needs npm. With --check it changes
# nothing and fails if what lies here is another thing.
set -euo pipefail
cd "$(dirname "$0")"
version=1.6.32

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && tar xzf "$(npm pack --silent "uplot@$version")")
cp "$work/package/dist/uPlot.iife.min.js" "$work/package/dist/uPlot.min.css" "$work"
{
    printf 'uPlot %s (https://github.com/leeoniya/uPlot)\n\n' "$version"
    cat "$work/package/LICENSE"
} > "$work/uPlot.LICENSE.txt"
for file in uPlot.iife.min.js uPlot.min.css uPlot.LICENSE.txt; do
    if [ "${1:-}" = "--check" ]; then cmp "$work/$file" "$file"; else cp "$work/$file" .; fi
done
[ "${1:-}" != "--check" ] || echo "as on npm"
