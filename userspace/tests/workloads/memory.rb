# SPDX-License-Identifier: GPL-2.0
#
# usage: memory.rb clears ROUNDS BYTES
#        memory.rb returns|keeps ROUNDS BYTES FILE
#        memory.rb copies OBJECTS CHILDREN [compact]
# It says that it is there, and begins when it reads a line.
# clears: a string of zeros each round. returns: reads the file into a new string each round; keeps: into the same one.
# copies: children collect garbage, one after the other, after the parent has compacted its heap, or has not. At the
# end a line of JSON: minor page faults of what was done, by the kernel's count, and collections, by the interpreter's.

require "json"

def faults
  File.read("/proc/self/stat").rpartition(")")[2].split[7].to_i
end

def answer(bytes)
  "\0" * bytes # /* SITE clears */
end

def fetch(source, bytes)
  source.read(bytes) # /* SITE returns */
end

def fetch_into(source, bytes, kept)
  source.read(bytes, kept) # /* SITE keeps */
end

def collect
  GC.start # /* SITE copies */
end

def in_child
  reader, writer = IO.pipe
  child = fork do
    before = faults
    collect
    writer.puts faults - before
    writer.close
  end
  writer.close
  said = Integer(reader.read)
  Process.wait(child)
  said
end

what, number, more, other = ARGV
number = Integer(number)
more = Integer(more)
if what == "copies"
  kept = Array.new(number) { |i| "object #{i}, which is not in its slot" }
  GC.compact if other == "compact"
  puts JSON.generate({ ready: true })
  $stdout.flush
  $stdin.gets
  puts JSON.generate({ faults: Array.new(more) { in_child }.sum, collections: GC.count })
  exit kept.size == number
end

puts JSON.generate({ ready: true })
$stdout.flush
$stdin.gets
before = faults
source = other && File.open(other, "rb")
kept = String.new(capacity: more)
number.times do
  case what
  when "clears" then answer(more)
  when "returns" then fetch(source, more)
  when "keeps" then fetch_into(source, more, kept)
  end
  source&.rewind
end
puts JSON.generate({ faults: faults - before, collections: GC.count, rounds: number })
