# SPDX-License-Identifier: GPL-2.0
#
# awk -f list.awk -f SHELL.awk LIST LIST memtoll.SHELL: what all shells need of the list that packaging/options printed.
# It is read twice: what values may be is said at its end. Then comes the shell's own file, with @...@ to be replaced.
BEGIN { FS = "\t" }

# The operands of a command, without what marks them as optional or many.
function operands(text) {
	gsub(/[][]|\.\.\.|--|ARGS/, "", text)
	gsub(/^ +| +$/, "", text)
	return text
}

FNR == 1 { pass++ }

# words[VALUE]: what a value may be.
pass == 1 && $1 == "value" {
	gsub(/ +$/, "", $3)
	words[$2] = $3
}

# "of alloc,faults,mappings; default: all": words of which any may be taken.
pass == 1 && $1 == "option" && $4 == "SET" && match($5, /^of [a-z,]+/) {
	sets["SET"] = substr($5, 4, RLENGTH - 3) " all"
	gsub(/,/, " ", sets["SET"])
}
