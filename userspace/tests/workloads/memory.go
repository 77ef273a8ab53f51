// SPDX-License-Identifier: GPL-2.0

// memory.go: what a Go program does with its buffers.
//
// usage: memory WHAT ROUNDS BYTES
//
//	clears    a new slice in each round; a hundred of them are held, so that the heap is large
//	keeps     one slice for all rounds
//	returns   a new slice, used, and then all that is free goes back to the kernel
//
// At the end one line of JSON: the kernel's count of faults, and the runtime's of what was allocated and of the heap
// that it ever had.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
)

const page = 4096

var (
	held [][]byte
	sum  int
)

//go:noinline
func answer(size int, round int) {
	body := make([]byte, size) /* SITE clears */
	body[round%size] = 1
	sum += int(body[size/2])
}

//go:noinline
func answerAgain(body []byte, round int) {
	body[round%len(body)] = 1
	for at := 0; at < len(body); at++ {
		sum += int(body[at])
	}
}

//go:noinline
func use(size int) {
	body := make([]byte, size)
	for at := 0; at < size; at += page {
		body[at] = 1 /* SITE uses */
	}
	held = append(held, body)
}

//go:noinline
func release() {
	held = nil
	debug.FreeOSMemory() /* SITE returns */
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: memory clears|keeps|returns ROUNDS BYTES")
		os.Exit(2)
	}
	rounds, _ := strconv.Atoi(os.Args[2])
	size, _ := strconv.Atoi(os.Args[3])
	switch os.Args[1] {
	case "clears":
		for i := 0; i < 101; i++ {
			held = append(held, make([]byte, size))
		}
		for i := 0; i < rounds; i++ {
			answer(size, i)
		}
	case "keeps":
		body := make([]byte, size)
		for i := 0; i < rounds; i++ {
			answerAgain(body, i)
		}
	case "returns":
		for i := 0; i < rounds; i++ {
			use(size)
			release()
		}
	}
	var usage syscall.Rusage
	var memory runtime.MemStats
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	runtime.ReadMemStats(&memory)
	fmt.Printf("{\"minflt\": %d, \"majflt\": %d, \"allocated\": %d, \"heap\": %d, \"version\": %q, \"held\": %d, \"sum\": %d}\n",
		usage.Minflt, usage.Majflt, memory.TotalAlloc, memory.HeapSys, runtime.Version(), len(held), sum)
}
