# SPDX-License-Identifier: GPL-2.0
#
# After list.awk: specifications of _arguments.

# Within single quotes, and in brackets or between colons of _arguments' specifications.
function quoted(text) {
	gsub(/'/, "'\\''", text)
	gsub(/[]:[]/, "\\\\&", text)
	return text
}

# What completes a value of that name.
function action(value) {
	if (value in words)
		return "(" words[value] ")"
	if (value in sets)
		return "_values -s , set " sets[value]
	if (value ~ /^PID.*,/)
		return "_sequence _pids"
	if (value == "PID")
		return "_pids"
	if (value == "NAME")
		return "_memtoll_processes"
	if (value == "LIMIT")
		return "(none 0)"
	if (value == "PATH" || value ~ /^DIR/)
		return "_files -/"
	if (value == "RECORDING")
		return "_memtoll_recordings"
	if (value == "FILE" || value == "LIB" || value == "PREFIX")
		return "_files"
	return " "
}

function spec(short, long, value, help,   names, optional, after) {
	optional = value ~ /^\[/
	if (optional)
		value = substr(value, 2, length(value) - 2)
	after = value == "" ? "" : optional ? "::" : ":"
	if (value != "")
		after = after quoted(value) ":" action(value)
	if (short != "" && long != "")
		names = "'(-" short " --" long ")'{-" short (value == "" || optional ? "" : "+") ",--" long \
			(value == "" ? "" : optional ? "=-" : "=") "}'"
	else if (long != "")
		names = "'--" long (value == "" ? "" : optional ? "=-" : "=")
	else
		names = "'-" short (value == "" ? "" : "+")
	return names "[" quoted(help) "]" after "'"
}

function end_command(   i, count, parts, value) {
	if (name == "")
		return
	if (arguments == "COMMAND")
		table = table " \\\n\t\t\t'*::command: _normal'"
	else {
		count = split(arguments, parts, " ")
		for (i = 1; i <= count; i++) {
			value = parts[i] == "FILE" ? "RECORDING" : parts[i]
			table = table " \\\n\t\t\t'" i "::" parts[i] ":" action(value) "'"
		}
	}
	table = table "\n\t\t;;\n"
}

pass == 2 && $1 == "command" {
	end_command()
	name = $2
	arguments = ""
	commands = commands (commands == "" ? "" : "\n") "\t\t'" $2 ":" quoted($3) "'"
	table = table "\t" name ")\n\t\t_arguments -s -S"
}

pass == 2 && $1 == "argument" { arguments = operands($2) }

pass == 2 && $1 == "option" { table = table " \\\n\t\t\t" spec($2, $3, $4, $5) }

pass < 3 { next }

/^@TABLE@$/ {
	end_command()
	printf "%s", table
	next
}

/^@COMMANDS@$/ {
	print commands
	next
}

{ print }
