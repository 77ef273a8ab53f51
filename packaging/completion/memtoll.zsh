#compdef memtoll
# SPDX-License-Identifier: GPL-2.0

_memtoll_commands() {
	local -a commands
	commands=(
@COMMANDS@
	)
	_describe -t commands command commands
}

_memtoll_recordings() {
	_files -g '*.memtoll(-.)'
}

_memtoll_processes() {
	local -aU names
	local file name
	for file in /proc/[0-9]*/comm(N); do
		read -r name 2>/dev/null <$file && names+=("$name")
	done
	compadd -a names
}

_memtoll() {
	local curcontext=$curcontext state line
	local -A opt_args
	_arguments -C \
		'(- *)'{-h,--help}'[print the commands]' \
		'(- *)'{-V,--version}'[print which build this is]' \
		'1:command:_memtoll_commands' \
		'*::argument:->arguments'
	[[ $state == arguments ]] || return
	curcontext=${curcontext%:*}-$words[1]:
	case $words[1] in
@TABLE@
	esac
}

_memtoll "$@"
