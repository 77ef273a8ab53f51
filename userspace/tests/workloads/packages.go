// SPDX-License-Identifier: GPL-2.0
//
// packages: fills memory by packages of Go's library.
//
// usage: packages ROUNDS BYTES
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

var kept any

//go:noinline
func buffers(size int) {
	var buffer bytes.Buffer
	for buffer.Len() < size {
		buffer.WriteString("some text that is repeated until it is enough of it")
	}
	kept = buffer.Len()
}

//go:noinline
func repeats(size int) {
	kept = strings.Repeat("text", size/4)
}

//go:noinline
func reads(size int) {
	read, err := io.ReadAll(strings.NewReader(kept.(string)[:size/2]))
	if err != nil {
		panic(err)
	}
	kept = read
}

//go:noinline
func joins(size int) {
	kept = bytes.Join([][]byte{kept.([]byte), make([]byte, size/2)}, nil)
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	size, _ := strconv.Atoi(os.Args[2])
	for round := 0; round < rounds; round++ {
		buffers(size)
		repeats(size)
		reads(size)
		joins(size)
	}
	fmt.Printf("{\"pid\": %d, \"rounds\": %d}\n", os.Getpid(), rounds)
}
