# Completion of trainer, prepare and diagnose in bash: their options, of prepare its commands and their options, and after
# trainer decks, by name or as files, and --set GROUP.NAME.
_tern_options() { "$@" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u; }

_tern() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} deck names=
  case $before in
    --set | -s)
      for deck in "${COMP_WORDS[@]:1}"; do [[ $deck != -* && $deck != *=* ]] && break; deck=; done
      [ -n "$deck" ] || return
      compopt -o nospace
      mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" "$deck" --print-deck 2>/dev/null |
        awk '/^&/ {group = substr($1, 2)} /^  [a-z_]+ +=/ {print group "." $1}')" -- "$word")
      return
      ;;
    --compare) compopt -o dirnames; return ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "h200 h100 a100 a100-40gb" -- "$word"); return ;;
  esac
  case $program:$word in
    *prepare:-*) ((COMP_CWORD > 1)) && names=$(_tern_options "$program" "${COMP_WORDS[1]}") || names=$(_tern_options "$program") ;;
    *:-*) names=$(_tern_options "$program") ;;
    *prepare:*) ((COMP_CWORD == 1)) && names=$("$program" --help | awk '/^commands:/ {on = 1; next} /^$/ {on = 0} on {print $1}') ;;
    *trainer:*) ((COMP_CWORD == 1)) && names=$("$program" --list 2>/dev/null | awk '/^[^ ]/ && NR > 1 {print $1}') ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
  [[ $word == -* ]] || ((${#COMPREPLY[@]})) || compopt -o default
}
complete -F _tern trainer prepare diagnose
