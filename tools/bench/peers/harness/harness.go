// Package harness has what all programs of peers share: objects from the standard input, a measurement to the output.
package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// longestLine is in bytes: a manifest is far below it.
const longestLine = 16 << 20

// Reading is one measurement of a peer.
type Reading struct {
	Peer       string  `json:"peer"`
	Go         string  `json:"go"`
	Placed     int     `json:"placed"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	FirstError string  `json:"first_error,omitempty"`
}

// Read calls add with the kind and the bytes of each document of the standard input, a JSON document a line.
func Read(add func(kind string, document []byte)) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var document struct {
			Kind string `json:"kind"`
		}
		Must(json.Unmarshal(lines.Bytes(), &document))
		add(document.Kind, lines.Bytes())
	}
	Must(lines.Err())
}

// Measure does count pieces of work in their order, so many workers at once, and prints what that took; placed returns
// how many objects have a place then.
func Measure(peer string, count, workers int, work func(number int) error, placed func() int) {
	var next atomic.Int64
	var first sync.Once
	reading := Reading{Peer: peer, Go: runtime.Version()}
	runtime.GC()
	begin, cpu := time.Now(), cpuSeconds()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= count {
					return
				}
				if err := work(number); err != nil {
					first.Do(func() { reading.FirstError = err.Error() })
				}
			}
		})
	}
	group.Wait()
	reading.Seconds, reading.CPUSeconds = time.Since(begin).Seconds(), cpuSeconds()-cpu
	reading.Placed = placed()
	Must(json.NewEncoder(os.Stdout).Encode(reading))
}

// Must ends the program with an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	Must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / float64(time.Second)
}
