// Go's runtime and pages that are taken away: loads and stores of goroutines on memory that a copy still writes, between nil pointers and
// bad addresses that the runtime turns into panics, preemption by signals, and stacks that grow. Prints the same with and without.
package main

// #cgo LDFLAGS: -L${SRCDIR} -llanding
// #include "landing.h"
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type node struct {
	pad  [64]byte
	next *node
}

func recovered(work func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	work()
	return "nothing"
}

func sum(bytes []byte) (total int) {
	for _, b := range bytes {
		total += int(b)
	}
	return
}

//go:noinline
func deep(n int, bytes []byte) int {
	var room [512]byte
	room[n%512] = bytes[n*13%len(bytes)]
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1, bytes) + int(room[n%512])
}

func main() {
	runtime.LockOSThread() // CUDA's current context belongs to the thread.
	address := C.landing_open()
	landing := unsafe.Slice((*byte)(unsafe.Pointer(address)), C.LANDING_BYTES)
	start, finish := func() { C.landing_start() }, func() { C.landing_finish() }

	fmt.Println("nil before:", recovered(func() { var n *node; n.next = n }))
	start()
	fmt.Println("loads:", sum(landing))
	finish()
	start()
	landing[9] = 7
	fmt.Println("nil in between:", recovered(func() { var n *node; fmt.Println(n.next) }))
	landing[5000] = 7
	finish()

	var group sync.WaitGroup
	sums := make([]int, 8)
	start()
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			part := len(landing) / len(sums)
			sums[i] = sum(landing[i*part : (i+1)*part])
			if recovered(func() { var n *node; n.pad[3] = 1 }) == "nothing" {
				sums[i] = -1
			}
		}(i)
	}
	group.Wait()
	finish()
	fmt.Println("goroutines:", sums)

	start()
	fmt.Println("a growing stack:", deep(5000, landing))
	finish()

	// Loops without a call are preempted by SIGURG; the collector runs meanwhile.
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = make([]byte, 1<<16)
				runtime.GC()
			}
		}
	}()
	until, rounds := time.Now().Add(300*time.Millisecond), 0
	for time.Now().Before(until) {
		start()
		if sum(landing) != 7*len(landing) {
			fmt.Println("wrong sum")
		}
		finish()
		rounds++
	}
	close(stop)
	fmt.Println("rounds:", rounds > 3)

	debug.SetPanicOnFault(true)
	fmt.Println("a bad address:", recovered(func() { *(*byte)(unsafe.Pointer(uintptr(0x7000))) = 1 }) != "nothing")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	start()
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	<-signals
	fmt.Println("a signal:", landing[77])
	finish()
	if len(os.Args) > 1 {
		start()
		var n *node
		n.next = n
	}
}
