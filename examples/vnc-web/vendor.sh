#!/usr/bin/env bash
# Puts noVNC (MPL-2.0) and xterm.js (MIT) into page/vendor, from where the program embeds
# them: the versions and hashes of package-lock.json, from npm. It does nothing if they are
# there already.
set -euo pipefail
cd "$(dirname "$0")"
# Two at the same time: the second waits, and finds them there.
exec 9<package-lock.json
if command -v flock >/dev/null; then flock 9; fi
sum=$(sha256sum package-lock.json "$(basename "$0")" | sha256sum | cut -d' ' -f1)
if [ "$(cat page/vendor/.sum 2>/dev/null)" = "$sum" ]; then exit; fi
command -v npm >/dev/null || { echo 'vendor.sh: needs npm, which is in the Debian package npm and comes with nodejs.org' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json "$work"
npm --prefix "$work" ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
# Beside page, which a build may be reading: what is embedded is there whole or not at all.
new=$(mktemp -d .vendor.XXXXXX)
trap 'rm -rf "$work" "$new"' EXIT
chmod 755 "$new"
mkdir -p "$new/novnc" "$new/xterm"
modules=$work/node_modules
cp -r "$modules/@novnc/novnc/core" "$modules/@novnc/novnc/vendor" "$modules/@novnc/novnc/LICENSE.txt" "$new/novnc"
cp "$modules/@xterm/xterm/lib/xterm.mjs" "$modules/@xterm/xterm/css/xterm.css" "$modules/@xterm/xterm/LICENSE" "$new/xterm"
echo "$sum" >"$new/.sum"
rm -rf page/vendor
mv "$new" page/vendor
