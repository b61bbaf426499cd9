#compdef trainer prepare diagnose
# Completion of trainer, prepare and diagnose in zsh: their options, of prepare its commands and their options, and after
# trainer decks, by name or as files.
_tern() {
  local -a names
  local program=$words[1]
  if [[ $words[CURRENT-1] == --device ]]; then
    names=(h200 h100 a100 a100-40gb)
  elif [[ $PREFIX == -* ]]; then
    if [[ $program == *prepare && $CURRENT -gt 2 ]]; then
      names=(${(f)"$($program $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)"})
    else
      names=(${(f)"$($program --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u)"})
    fi
  elif [[ $CURRENT -eq 2 && $program == *prepare ]]; then
    names=(${(f)"$($program --help | awk '/^commands:/ {on = 1; next} /^$/ {on = 0} on {print $1}')"})
  elif [[ $CURRENT -eq 2 && $program == *trainer ]]; then
    names=(${(f)"$($program --list 2>/dev/null | awk '/^[^ ]/ && NR > 1 {print $1}')"})
  fi
  compadd -a names
  [[ $PREFIX == -* ]] || _files
}
_tern "$@"
