#!/bin/bash
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
name=${1:-"it's (here)"}

usage() { echo "usage: $0 [start|stop] <name>" >&2; exit 2; }

kind=$(case $name in a*) echo 1;; (b) echo 2;; *) echo "${name%)}";; esac)
for file in "$root"/*.{txt,md}; do
  [[ -f $file && $(wc -l < "$file") -gt 3 ]] || continue
  lines=$(( $(wc -l < "$file") >> 1 ))
  if [ "$lines" -gt 10 ]; then
    echo "${file##*/}: $lines (of $kind)" >> "$root/log" 2>&1
  fi
done
case "$kind" in
  start) run "$name" && echo 'started)' ;;
  stop|kill) stop "${name}" ;;
  *) usage ;;
esac
