# Bash completion of trainer, prepare and diagnose: options; for trainer also decks and --set GROUP.NAME.
_tern() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} deck
  case $before in
    --set | -s)
      for deck in "${COMP_WORDS[@]:1}"; do [[ $deck == *.in && -f $deck ]] && break; deck=; done
      [ -n "$deck" ] || return
      compopt -o nospace
      mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" "$deck" --print-deck 2>/dev/null |
        awk '/^&/ {group = substr($1, 2)} /^  [a-z_]+ +=/ {print group "." $1}')" -- "$word")
      ;;
    --compare) compopt -o dirnames ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "h200 h100 a100" -- "$word") ;;
    *)
      case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]+')" -- "$word") ;;
        *)
          if [[ $program == *prepare && $COMP_CWORD = 1 ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$("$program" --help | awk '$1 == "./prepare" {print $2}')" -- "$word")
          else
            compopt -o default
          fi
          ;;
      esac
      ;;
  esac
}
complete -F _tern trainer prepare diagnose
