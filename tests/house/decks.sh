#!/usr/bin/env bash
# Every deck of input/ is read and checked, and --print-deck writes a deck that reads the same.
#
#   decks.sh TRAINER
set -euo pipefail
trainer=$1
cd "$(dirname "$0")/../.."
printed=$(mktemp -d)
trap 'rm -rf "$printed"' EXIT
decks=(input/*.in)
[ -f "${decks[0]}" ]
for deck in "${decks[@]}"; do
  "$trainer" "$deck" --print-deck >"$printed/deck.in"
  "$trainer" "$printed/deck.in" --print-deck >"$printed/again.in"
  cmp "$printed/deck.in" "$printed/again.in"
  echo "$deck reads"
done
