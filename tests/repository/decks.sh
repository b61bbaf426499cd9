#!/usr/bin/env bash
# Every deck of input/ is read and checked, and --print-deck writes a deck that reads the same. It takes every preset of
# the batch that its learning rate allows, and every preset of refinement, with nothing else.
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
  presets=()
  if grep -q "^  preset *= *'recommended'" "$deck"; then
    presets+=(batch.preset={conservative,recommended,aggressive,extreme})
  fi
  if grep -q "^  kind *= *'refinement'" "$deck"; then presets+=(objective.preset={aggressive,extreme}); fi
  for preset in ${presets[@]+"${presets[@]}"}; do
    "$trainer" "$deck" --set "$preset" --print-deck >"$printed/deck.in"
    "$trainer" "$printed/deck.in" --print-deck >/dev/null
  done
  echo "$deck reads${presets[*]:+, with ${presets[*]}}"
done
