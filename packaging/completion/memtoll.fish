# SPDX-License-Identifier: GPL-2.0
# fish completion for memtoll

function __memtoll_recordings
    __fish_complete_suffix .memtoll
end

function __memtoll_names
    for file in /proc/[0-9]*/comm
        string collect <$file 2>/dev/null
    end | sort -u
end

# The last of several that commas join.
function __memtoll_list
    set -l before (string match -r '^.*,' -- (commandline -ct | string replace -r '^--?[a-z-]+=' ''))
    for word in $argv
        echo "$before"$word
    end
end

complete -c memtoll -f
complete -c memtoll -n __fish_use_subcommand -s h -l help -d 'print the commands'
complete -c memtoll -n __fish_use_subcommand -s V -l version -d 'print which build this is'
@TABLE@
