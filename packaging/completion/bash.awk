# SPDX-License-Identifier: GPL-2.0
#
# After list.awk: words of each command.

function end_command() {
	if (name != "")
		table = table "\t" name ")\n\t\toptions='" options "'\n\t\ttakes='" takes "'\n\t\targuments='" \
			arguments "'\n\t\t;;\n"
	options = takes = arguments = ""
}

function add(list, word) {
	return list (list == "" ? "" : " ") word
}

pass == 2 && $1 == "command" {
	end_command()
	name = $2
	commands = add(commands, name)
}

pass == 2 && $1 == "argument" { arguments = operands($2) }

pass == 2 && $1 == "option" {
	if ($2 != "") {
		options = add(options, "-" $2)
		if ($4 != "")
			takes = add(takes, "-" $2 "=" $4)
	}
	if ($3 != "") {
		options = add(options, "--" $3 ($4 == "" || $4 ~ /^\[/ ? "" : "="))
		if ($4 != "")
			takes = add(takes, "--" $3 "=" $4)
	}
}

pass == 2 && $1 == "value" { values = values "\t" $2 ") _memtoll_words '" words[$2] "' ;;\n" }

pass < 3 { next }

/^@TABLE@$/ {
	end_command()
	printf "%s", table
	next
}

/^@VALUES@$/ {
	for (set in sets)
		printf "\t%s) _memtoll_list '%s' ;;\n", set, sets[set]
	printf "%s", values
	next
}

{
	gsub(/@COMMANDS@/, commands)
	print
}
