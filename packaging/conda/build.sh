#!/usr/bin/env bash
# Puts an unpacked archive (the working folder) into the environment PREFIX. The programs stay beside their libraries:
# streamsan looks for them in the folder of its own file, which a link leads to.
set -euo pipefail
mkdir -p "$PREFIX/bin" "$PREFIX/lib/streamsan"
cp -a bin/. "$PREFIX/lib/streamsan/"
ln -sfn ../lib/streamsan/streamsan "$PREFIX/bin/streamsan"
for folder in include lib share; do
    [ ! -d "$folder" ] || cp -a "$folder" "$PREFIX/"
done
