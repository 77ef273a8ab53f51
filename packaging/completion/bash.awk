# SPDX-License-Identifier: GPL-2.0
#
# awk -f bash.awk LIST LIST memtoll.bash: with what packaging/options printed in its place.
BEGIN { FS = "\t" }

FNR == 1 { pass++ }

function end_command() {
	if (name != "")
		table = table "\t" name ")\n\t\toptions='" options "'\n\t\ttakes='" takes "'\n\t\targuments='" \
			arguments "'\n\t\t;;\n"
	options = takes = arguments = ""
}

function add(list, word) {
	return list (list == "" ? "" : " ") word
}

pass == 1 && $1 == "command" {
	end_command()
	name = $2
	commands = add(commands, name)
}

pass == 1 && $1 == "argument" {
	arguments = $2
	gsub(/[][]|\.\.\.|--|ARGS/, "", arguments)
	gsub(/^ +| +$/, "", arguments)
}

pass == 1 && $1 == "option" {
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
	# "of alloc,faults,mappings; default: all": words of which any may be taken.
	if ($4 == "SET" && match($5, /^of [a-z,]+/)) {
		words = substr($5, 4, RLENGTH - 3)
		gsub(/,/, " ", words)
		sets["SET"] = words " all"
	}
}

pass == 1 && $1 == "value" {
	gsub(/ +$/, "", $3)
	values = values "\t" $2 ") _memtoll_words '" $3 "' ;;\n"
}

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
