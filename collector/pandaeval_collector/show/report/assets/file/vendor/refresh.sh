#!/usr/bin/env bash
# Fetches the plotting library that reports carry from npm, at the versions named here. Needs npm. With --check it
# changes nothing and fails if what lies here is another thing.
set -euo pipefail
cd "$(dirname "$0")"
chart=4.6.1
color=0.3.2 # part of chart.umd.min.js

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in "chart.js@$chart" "@kurkle/color@$color"; do
    name=$(cd "$work" && npm pack --silent "$package")
    mkdir -p "$work/${package%%@[0-9]*}"
    tar xzf "$work/$name" -C "$work/${package%%@[0-9]*}" --strip-components=1
done
# The last line names a source map, which browsers would ask for.
sed '/^\/\/# sourceMappingURL=/d' "$work/chart.js/dist/chart.umd.min.js" > "$work/chart.umd.min.js"
{
    printf 'Chart.js %s (https://www.chartjs.org)\n\n' "$chart"
    cat "$work/chart.js/LICENSE.md"
    printf '\n\nIt contains @kurkle/color %s (https://github.com/kurkle/color)\n\n' "$color"
    cat "$work/@kurkle/color/LICENSE.md"
} > "$work/chart.LICENSE.txt"
if [ "${1:-}" = "--check" ]; then
    cmp "$work/chart.umd.min.js" chart.umd.min.js && cmp "$work/chart.LICENSE.txt" chart.LICENSE.txt && echo "as on npm"
else
    cp "$work/chart.umd.min.js" "$work/chart.LICENSE.txt" .
fi
