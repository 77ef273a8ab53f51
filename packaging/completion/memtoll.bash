# SPDX-License-Identifier: GPL-2.0
# bash completion for memtoll. Needs nothing but bash 4.

# The commands' options: what there is, which take a value (OPTION=NAME), what follows them.
_memtoll_table() { # command
	options='' takes='' arguments=''
	case $1 in
@TABLE@
	esac
}

_memtoll_takes() { # option: the name of its value, in brackets where it may be left out
	local pair

	for pair in $takes; do
		[ "$1" = "${pair%%=*}" ] && echo "${pair#*=}"
	done
}

_memtoll_words() { # the words that may follow: of our own making, as compgen expands them
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_memtoll_files() { # compgen's option, pattern
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(
		compgen "$1" -X "${2:+!$2}" -- "$current"
		[ -z "${2:-}" ] || compgen -d -- "$current"
	)
}

# The last of several that commas join.
_memtoll_list() { # words
	local before=
	[[ $current == *,* ]] && before=${current%,*},
	compopt -o nospace 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${current#"$before"}")
}

_memtoll_processes() { # what of them: pid, name
	local file name
	for file in /proc/[0-9]*/comm; do
		if [ "$1" = pid ]; then
			file=${file%/comm}
			echo "${file#/proc/}"
		else
			# Anybody names a process, "$(reboot)" as well, and compgen -W would run that.
			read -r name 2>/dev/null <"$file" && [[ $name =~ ^[[:alnum:]_.:+@-]+$ ]] && echo "$name"
		fi
	done
}

_memtoll_value() { # its name
	case $1 in
@VALUES@
	PID*,*) _memtoll_list "$(_memtoll_processes pid)" ;;
	PID) _memtoll_words "$(_memtoll_processes pid)" ;;
	NAME) _memtoll_words "$(_memtoll_processes name)" ;;
	LIMIT) _memtoll_words 'none 0' ;;
	PATH | DIR | DIRECTORY) _memtoll_files -d ;;
	RECORDING) _memtoll_files -f '*.memtoll' ;;
	FILE | LIB | PREFIX) _memtoll_files -f ;;
	esac
}

_memtoll() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local options takes arguments kind word i positional=0 joined=

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_memtoll_words '@COMMANDS@ --help --version'
		return
	fi
	_memtoll_table "${COMP_WORDS[1]}"
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		kind=$(_memtoll_takes "$word")
		if [ "$word" = -- ]; then
			_memtoll_command $((i + 1))
			return
		elif [ "${COMP_WORDS[i + 1]}" = = ]; then
			i=$((i + 2)) # --option=value is three words to bash
		elif [ -n "$kind" ] && [[ $kind != \[* ]]; then
			i=$((i + 1))
		elif [[ $word == -* ]]; then
			continue
		elif [ "$arguments" = COMMAND ]; then
			_memtoll_command "$i"
			return
		else
			positional=$((positional + 1))
		fi
	done
	if [ "$current" = = ]; then
		current=
		joined=1
	elif [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
		joined=1
	fi
	kind=$(_memtoll_takes "$previous")
	if [ -n "$kind" ] && { [ -n "$joined" ] || [[ $kind != \[* ]]; }; then
		kind=${kind#[}
		_memtoll_value "${kind%]}"
		return
	fi
	# shellcheck disable=SC2086 # words
	set -- $arguments
	shift $((positional < $# ? positional : $#))
	if [[ $current == -* ]] || [ $# -eq 0 ]; then
		_memtoll_words "$options"
		[[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace 2>/dev/null
	elif [ "$1" = COMMAND ]; then
		_memtoll_command "$COMP_CWORD"
	else
		_memtoll_value "${1/#FILE/RECORDING}"
	fi
	return 0
}

# What is traced: a program, then whatever completes its arguments.
_memtoll_command() { # where it begins
	if [ "$1" -ge "$COMP_CWORD" ]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "$current")
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		_memtoll_files -f
	fi
}

complete -F _memtoll memtoll
