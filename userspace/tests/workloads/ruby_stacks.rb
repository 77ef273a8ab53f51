# SPDX-License-Identifier: GPL-2.0
#
# Allocate at known places, and say what Ruby itself says of who called whom there: a line of JSON for each case.
#
# usage: ruby_stacks.rb [wait|stay]
# With "wait" it says that it is there, and begins when it reads a line; with either it ends when it reads one.

require "json"

COUNT = 13
BLOCK = 1 << 20

# The stack as the interpreter has it, without functions in C: these have no lines of their own.
C_FUNCTIONS = %w[each sort_by call new eval].freeze

$said = []

def say(name, locations)
  chain = locations.map { |place| [place.label, place.path, place.lineno] }
  chain.reject! { |label, _, _| C_FUNCTIONS.include?(label) }
  $said << { case: name, chain: chain, count: COUNT, bytes: BLOCK + 1 }
end

def nested(level)
  return nested(level - 1) if level.positive?
  say("nested", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
end

def recursive(level)
  [level].each do |left|
    if left.zero?
      say("recursive", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
    else
      recursive(left - 1)
    end
  end
end

class Holder
  attr_reader :kept

  def initialize
    say("new", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
  end

  def self.of_class
    say("of a class", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
  end

  define_method(:defined) do
    say("defined by a block", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
  end

  def method_missing(name)
    say("missing", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
  end

  def respond_to_missing?(_name, _all)
    true
  end
end

def sorted
  [3].sort_by { |_one| say("sorted", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT }
end

def rescued
  raise "caught"
rescue RuntimeError
  say("rescued", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
ensure
  $said << nil
end

def by_lambda
  made = lambda do |_one|
    say("lambda", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT
  end
  made.call(1)
end

def evaluated
  eval("say('eval', caller_locations(0)); i = -1; 'x' * BLOCK while (i += 1) < COUNT", binding, "written", 7)
end

def in_fiber
  Fiber.new { say("fiber", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT }.resume
end

def in_thread
  Thread.new { say("thread", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT }.join
end

def tapped
  1.tap { say("written in Ruby", caller_locations(0)); i = -1; "x" * BLOCK while (i += 1) < COUNT }
end

if ARGV[0] == "wait"
  puts JSON.generate({ ready: true })
  $stdout.flush
  $stdin.gets
end
nested(3)
recursive(5)
Holder.new.defined
Holder.of_class
Holder.allocate.nothing_like_it
sorted
rescued
by_lambda
evaluated
in_fiber
in_thread
tapped
$said.compact.each { |line| puts JSON.generate(line) }
puts JSON.generate({ done: true })
$stdout.flush
$stdin.gets if ARGV[0]
