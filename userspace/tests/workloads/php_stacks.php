<?php
/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allocate at known places, and say what PHP itself says of who called whom there: a line of JSON for each case.
 *
 * usage: php_stacks.php [wait]
 * With "wait" it says that it is there, begins when it reads a line, and ends when it reads another.
 */

const COUNT = 13;
const BLOCK = 4 << 20;

$said = [];

/* The stack as the interpreter has it, without functions in C: these have no lines of their own. */
function say(string $name, array $calls, int $line): void
{
	global $said;
	$chain = [];
	foreach ($calls as $number => $call) {
		if ($number == 0 || isset($calls[$number - 1]['line']))
			$chain[] = [($call['class'] ?? '') . (isset($call['class']) ? '::' : '') . $call['function'], $line];
		$line = $call['line'] ?? 0;
	}
	$chain[] = ['{main}', $line];
	$said[] = ['case' => $name, 'chain' => $chain, 'count' => COUNT, 'bytes' => BLOCK];
}

function nested(int $level): void
{
	if ($level > 0) {
		nested($level - 1);
		return;
	}
	say('nested', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
}

function recursive(int $level): void
{
	array_map(function ($left) {
		if ($left > 0) {
			recursive($left - 1);
			return;
		}
		say('recursive', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	}, [$level]);
}

class Holder
{
	function __construct()
	{
		say('new', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	}

	static function of_class(): void
	{
		say('of a class', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	}

	function __call($name, $arguments)
	{
		say('missing', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	}
}

function sorted(): void
{
	$values = [3, 1];
	usort($values, 'compare');
}

function compare($one, $other): int
{
	say('sorted', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	return $one <=> $other;
}

function caught(): void
{
	try {
		throw new Exception('caught');
	} catch (Exception $exception) {
		say('caught', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	}
}

function generated()
{
	say('generator', debug_backtrace(), __LINE__); for ($i = 0; $i < COUNT; $i++) str_repeat('x', BLOCK);
	yield 1;
}

function drawn(): void
{
	foreach (generated() as $one)
		;
}

if (($argv[1] ?? '') == 'wait') {
	echo json_encode(['ready' => true]), "\n";
	fgets(STDIN);
}
nested(3);
recursive(5);
$holder = new Holder();
Holder::of_class();
$holder->nothing_like_it();
sorted();
caught();
drawn();
foreach ($said as $one)
	echo json_encode($one), "\n";
echo json_encode(['done' => true]), "\n";
if (($argv[1] ?? '') == 'wait')
	fgets(STDIN);
