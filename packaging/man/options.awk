# SPDX-License-Identifier: GPL-2.0
#
# awk -f options.awk LIST PAGE: the page, with what `memtoll COMMAND --list-options` (option_list.h) printed where
# it says @OPTIONS@; memtoll's own with `memtoll --list-commands`, at @COMMANDS@ and @SEE_ALSO@.
BEGIN { FS = "\t" }

# What roff would take for more than a text.
function text(words) {
	gsub(/\\/, "\\e", words)
	gsub(/--/, "\\-\\-", words)
	sub(/^[.']/, "\\\\\\&&", words)
	return words
}

function close_list() {
	if (open)
		list = list ".El\n"
	open = 0
}

function open_list() {
	if (!open)
		list = list ".Bl -tag -width Ds\n"
	open = 1
}

function item(short, name, value,   words) {
	gsub(/-/, "\\-", name)
	words = ".It"
	if (short != "")
		words = words " Fl " short (name == "" ? "" : " ,")
	if (name != "")
		words = words " Fl \\-" name
	if (value == "")
		return words
	if (value ~ /^\[/)
		return words " Ns Op = Ns Ar " substr(value, 2, length(value) - 2)
	return words (name == "" ? " Ar " : " Ns = Ns Ar ") value
}

FNR == NR && $1 == "group" {
	close_list()
	sub(/:$/, "", $2)
	list = list ".Ss " text($2) "\n"
}

FNR == NR && $1 == "option" {
	open_list()
	# The last ones, --help among them, have no heading.
	list = list item($2, $3, $4) "\n" text($5) ".\n"
}

FNR == NR && $1 == "command" {
	list = list ".It Xr memtoll-" $2 " 8\n" text($3) "\n"
	names[++count] = $2
}

FNR == NR { next }

$0 == "@COMMANDS@" {
	printf "%s", list
	next
}

$0 == "@SEE_ALSO@" {
	# By name: there are a dozen.
	for (i = 1; i <= count; i++)
		for (k = i + 1; k <= count; k++)
			if (names[k] < names[i]) {
				name = names[i]
				names[i] = names[k]
				names[k] = name
			}
	for (i = 1; i <= count; i++)
		print ".Xr memtoll-" names[i] " 8" (i < count ? " ," : "")
	next
}

$0 == "@OPTIONS@" {
	close_list()
	printf "%s", list
	next
}

{ print }
