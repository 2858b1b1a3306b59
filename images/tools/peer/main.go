package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// answerLimit is how long an answer may take, also where many tests share the processors.
const answerLimit = 5 * time.Second

// pageLimit is how long a page may take. A handshake is seconds of work for an emulated guest,
// which may have a tenth of a processor.
const pageLimit = 2 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	want := map[string]int{"serve": 2, "get": 1, "ask": 2, "connect": 2, "send": 2, "hold": 2, "large": 2, "resolve": 1}
	if len(args) == 0 || len(args)-1 != want[args[0]] || want[args[0]] == 0 {
		return fmt.Errorf("no such command: %q", args)
	}
	switch args[0] {
	case "serve":
		return serve(args[1], args[2])
	case "get":
		return get(os.Stdout, args[1])
	case "ask":
		return ask(os.Stdout, args[1], args[2], limit(args[2]), answerLimit)
	case "hold":
		return hold(args[1], args[2])
	case "resolve":
		return resolve(os.Stdout, args[1])
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	switch args[0] {
	case "connect":
		return connect(os.Stdout, args[1], n)
	case "large":
		return large(os.Stdout, args[1], n)
	}
	return send(os.Stdout, args[1], time.Duration(n)*time.Second)
}
