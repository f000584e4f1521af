#!/usr/bin/env bash
# Copies folders to a place and keeps the last few copies.
set -euo pipefail

readonly KEEP="${KEEP:-5}"
target=${1:?"usage: backup TARGET FOLDER..."}
shift

log() {
  local level=$1
  shift
  printf '%s [%s] %s\n' "$(date +%T)" "$level" "$*" >&2
}

prune() {
  local -a copies
  mapfile -t copies < <(ls -1t "$target" | tail -n "+$((KEEP + 1))")
  for copy in "${copies[@]}"; do
    rm -r -- "${target:?}/$copy"
    log info "removed $copy"
  done
}

if [[ ! -d $target ]]; then
  mkdir -p "$target" || exit 1
fi

for folder in "$@"; do
  case $folder in
    /*) log warn "absolute: $folder" ;;
    *.tmp | *.bak)
      continue
      ;;
  esac
  while read -r file; do
    cp --parents "$file" "$target/$(date +%F)"
  done < <(find "$folder" -type f)
done

prune
