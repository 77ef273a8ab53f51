# SPDX-License-Identifier: GPL-2.0
#
# After list.awk: rules of complete.

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/'/, "\\'", text)
	return "'" text "'"
}

# What completes a value of that name.
function action(value) {
	if (value in words)
		return " -x -a " quoted(words[value])
	if (value in sets)
		return " -x -a " quoted("(__memtoll_list " sets[value] ")")
	if (value ~ /^PID/)
		return " -x -a '(__fish_complete_pids)'"
	if (value == "NAME")
		return " -x -a '(__memtoll_names)'"
	if (value == "LIMIT")
		return " -x -a 'none 0'"
	if (value == "PATH" || value ~ /^DIR/)
		return " -x -a '(__fish_complete_directories)'"
	if (value == "RECORDING")
		return " -a '(__memtoll_recordings)'"
	if (value == "COMMAND")
		return " -a '(__fish_complete_subcommand --fcs-skip=2)'"
	if (value == "FILE" || value == "LIB" || value == "PREFIX")
		return " -r -F"
	return " -x"
}

pass == 2 && $1 == "command" {
	seen = "complete -c memtoll -n '__fish_seen_subcommand_from " $2 "'"
	table = table "complete -c memtoll -n __fish_use_subcommand -a " $2 " -d " quoted($3) "\n"
}

pass == 2 && $1 == "argument" {
	count = split(operands($2), parts, " ")
	for (i = 1; i <= count; i++)
		table = table seen action(parts[i] == "FILE" ? "RECORDING" : parts[i]) "\n"
}

pass == 2 && $1 == "option" {
	line = seen ($2 == "" ? "" : " -s " $2) ($3 == "" ? "" : " -l " $3)
	# One that may be left out is no value that is asked for. Of others fish would offer --NAME= as well.
	if ($4 != "" && $4 !~ /^\[/)
		line = line (action($4) ~ / -[rx]/ ? "" : " -r") action($4)
	table = table line " -d " quoted($5) "\n"
}

pass < 3 { next }

/^@TABLE@$/ {
	printf "%s", table
	next
}

{ print }
