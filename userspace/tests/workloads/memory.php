<?php
/* SPDX-License-Identifier: GPL-2.0 */
/*
 * usage: memory.php clears|returns|keeps ROUNDS BYTES
 * It says that it is there, and begins when it reads a line.
 * clears: a string of zeros each round. returns: a string of the same words each round. keeps: changes one string. At the end a line of JSON: minor page faults of what was done, by the
 * kernel's count, and the peak of memory, by the interpreter's.
 */

function answer(int $bytes): string
{
	return str_repeat("\0", $bytes); /* SITE clears */
}

function page(int $bytes): int
{
	$made = str_repeat("<td>", $bytes >> 2); /* SITE returns */
	return strlen($made);
}

function change(string &$kept, int $round): void
{
	for ($at = 0; $at < 50000; $at++)
		$kept[($round * 7919 + $at * 127) % strlen($kept)] = 'y'; /* SITE keeps */
}

[, $what, $rounds, $bytes] = $argv;
$kept = $what == 'keeps' ? str_repeat('x', (int)$bytes) : '';
echo json_encode(['ready' => true]), "\n";
fgets(STDIN);
$before = getrusage()['ru_minflt'];
for ($round = 0; $round < (int)$rounds; $round++) {
	if ($what == 'clears')
		answer((int)$bytes);
	elseif ($what == 'returns')
		page((int)$bytes);
	else
		change($kept, $round);
}
echo json_encode([
	'faults' => getrusage()['ru_minflt'] - $before,
	'peak' => memory_get_peak_usage(true),
	'rounds' => (int)$rounds,
]), "\n";
