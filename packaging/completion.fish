# Completion of trainer, prepare and diagnose in fish: their options, of prepare its commands and their options, and after
# trainer decks by name.
function __tern_options
  set -l words (commandline -opc)
  if string match -q '*prepare' $words[1]; and set -q words[2]
    $words[1] $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z0-9-]+' | sort -u
  else
    $words[1] --help 2>/dev/null | string match -ra -- '--[a-z][a-z0-9-]+' | sort -u
  end
end

function __tern_first
  test (count (commandline -opc)) = 1
end

for program in trainer prepare diagnose
  complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -a '(__tern_options)'
end
complete -c trainer -n __tern_first -a '(trainer --list 2>/dev/null | tail -n +2 | string match -r "^\S+")'
complete -c prepare -n __tern_first -f -a '(prepare --help | string match -r "^  [a-z][a-z0-9-]+ " | string trim)'
complete -c trainer -l device -x -a 'h200 h100 a100 a100-40gb'
