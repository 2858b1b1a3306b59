package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/internal/proof"
	"github.com/podvisor/podvisor/vmi/kinds"
)

func main() {
	fields := flag.String("fields", "", "try only the fields whose kind and path match, as KubeVirt/spec, a regular `expression`")
	tests := flag.String("tests", "", "run only the tests whose names match the regular `expression`")
	timeout := flag.String("timeout", "60m", "the `duration` that a test may take")
	flag.Parse()
	r := runner{root: ".", timeout: *timeout}
	void, err := r.all(*fields, *tests)
	if err == nil && void > 0 {
		err = fmt.Errorf("%d proofs prove nothing", void)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// runner runs tests of the repository at root.
type runner struct {
	root, timeout string
}

// claim is a proof of a kind.
type claim struct {
	kind string
	proof.Proof
}

// claims are the proofs of all served kinds, by the names of their tests.
func claims() map[string][]claim {
	out := map[string][]claim{}
	for _, k := range kinds.All() {
		if !k.Served() {
			continue
		}
		for _, p := range proof.All(k.Kind) {
			out[p.Test] = append(out[p.Test], claim{k.Kind, p})
		}
	}
	return out
}

// all tries the proofs that match, and returns how many of them prove nothing.
func (r runner) all(fields, tests string) (int, error) {
	field, err := regexp.Compile(fields)
	if err != nil {
		return 0, err
	}
	name, err := regexp.Compile(tests)
	if err != nil {
		return 0, err
	}
	there, err := readTests(r.root)
	if err != nil {
		return 0, err
	}
	void, all := 0, claims()
	for _, t := range slices.Sorted(maps.Keys(all)) {
		these := slices.DeleteFunc(all[t], func(c claim) bool { return c.Requires == "" || !field.MatchString(c.kind+"/"+c.Path) })
		if len(these) == 0 || !name.MatchString(t) {
			continue
		}
		if said := r.run(there[t], ""); said.is != passed {
			fmt.Printf("-- %s: %s as it is, and proves nothing here%s\n", t, said.is, said.tail())
			continue
		}
		for _, c := range these {
			mark, how := "--", ""
			f, err := fieldAt(c.kind, c.Path)
			if err == nil {
				mark, how, err = r.try(there[t], f, c.Requires)
			}
			switch {
			case errors.Is(err, errForeign):
				how = "was not tried: " + err.Error()
			case err != nil:
				return 0, fmt.Errorf("%s %s: %w", c.kind, c.Path, err)
			case mark == proofless:
				void++
			}
			fmt.Printf("%s %s %s: %s %s\n", mark, c.kind, c.Path, t, how)
		}
	}
	return void, nil
}

// The marks of proofs that were tried.
const (
	proven    = "ok"
	proofless = "VOID"
)

// try says whether the test fails without the field, and how.
func (r runner) try(t test, f field, requires string) (mark, how string, err error) {
	at, err := t.requiring(requires)
	if err != nil {
		return "", "", err
	}
	for _, by := range f.sides() {
		said, err := r.without(t, f, by)
		switch {
		case err != nil:
			return "", "", err
		case said.is == passed:
			mark, how = proofless, "passes without it"
		case said.is != failed:
			return proofless, said.is + " without it" + said.tail(), nil
		case said.by(at):
			return proven, "fails without it, by its assertion", nil
		default:
			return proven, "fails without it, by another assertion, as " + said.first(), nil
		}
	}
	return mark, how, nil
}

// without runs the test without the field.
func (r runner) without(t test, f field, by side) (outcome, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.out(r.root, t.dir, by, dir)
	if err != nil {
		return outcome{}, err
	}
	return r.run(t, overlay), nil
}

// The outcomes of a test.
const (
	passed  = "passes"
	failed  = "fails"
	skipped = "skips"
	unbuilt = "is not built"
)

// outcome is what came of a test.
type outcome struct {
	is, text string
}

// run runs the test, with an overlay if it is not empty.
func (r runner) run(t test, overlay string) outcome {
	flags := os.Getenv("GOFLAGS")
	if overlay != "" {
		flags += " -overlay=" + overlay
	}
	c := exec.Command("go", "test", "-vet=off", "-count=1", "-v", "-timeout", r.timeout, "-run", "^"+t.fn.Name.Name+"$", ".")
	c.Dir = filepath.Join(r.root, t.dir)
	c.Env = append(os.Environ(), "GOFLAGS="+flags)
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	o := outcome{text: b.String()}
	switch name := t.fn.Name.Name; {
	case strings.Contains(o.text, "[build failed]") || strings.Contains(o.text, "[setup failed]"):
		o.is = unbuilt
	case strings.Contains(o.text, "--- SKIP: "+name+" "):
		o.is = skipped
	case err != nil:
		o.is = failed
	case strings.Contains(o.text, "--- PASS: "+name+" "):
		o.is = passed
	default:
		o.is = "does not run"
	}
	return o
}

var lineOf = regexp.MustCompile(`(\w+_test\.go):(\d+)`)

// by reports whether one of the assertions failed.
func (o outcome) by(all []assertion) bool {
	for _, m := range lineOf.FindAllStringSubmatch(o.text, -1) {
		for _, a := range all {
			var line int
			if _, err := fmt.Sscan(m[2], &line); err == nil && m[1] == a.file && a.from <= line && line <= a.to {
				return true
			}
		}
	}
	return false
}

// first is where the test failed first.
func (o outcome) first() string {
	if m := lineOf.FindString(o.text); m != "" {
		return m
	}
	return strings.TrimSpace(o.tail())
}

// tail is the end of what the test said.
func (o outcome) tail() string {
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	return "\n\t" + strings.Join(lines[max(0, len(lines)-5):], "\n\t")
}
