package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/mutate/testdata/sample"
)

func TestEachProofNamesAnAssertionOfItsTest(t *testing.T) {
	there, err := readTests("../..")
	require.NoError(t, err)
	var faults []string
	for name, all := range claims() {
		of, ok := there[name]
		if !ok {
			faults = append(faults, "there is no test "+name)
			continue
		}
		for _, c := range all {
			if c.Requires == "" {
				require.NotEmpty(t, of.assertions(), name)
				continue
			}
			if _, err := of.requiring(c.Requires); err != nil {
				faults = append(faults, fmt.Sprintf("%s %s: %s: %q: %v: name the assertion that fails when the field has no effect, in internal/proof", c.kind, c.Path, name, c.Requires, err))
			}
		}
	}
	require.Empty(t, faults, strings.Join(faults, "\n"))
}

// Each served kind's fields can be taken out, or are of another module's types.
func TestEachFieldWithAProofIsFoundInTheTypes(t *testing.T) {
	for _, all := range claims() {
		for _, c := range all {
			if _, err := fieldAt(c.kind, c.Path); err != nil {
				require.ErrorIs(t, err, errForeign, "%s %s", c.kind, c.Path)
			}
		}
	}
	_, err := fieldAt("VirtualMachineInstance", "spec.domain.nothing")
	require.ErrorContains(t, err, "has no field nothing")
	_, err = fieldAt("Nothing", "spec")
	require.ErrorContains(t, err, "there is no kind Nothing")
	_, err = fieldAt("VirtualMachineInstance", "spec.affinity.podAffinity")
	require.ErrorIs(t, err, errForeign)
}

func TestAPieceOfAnAssertionIsFoundAndOneOfAnInputIsNot(t *testing.T) {
	const source = `package p

func helper(t *testing.T, want string) { t.Helper(); require.Equal(t, "of the helper", want) }
func silent(want string) {}

func TestX(t *testing.T) {
	v := input("given")
	silent("to one that asserts nothing")
	require.Equal(t, "first",
		v, "over two lines")
	helper(t, "second")
	await := func(what string) { helper(t, what) }
	await("by a closure")
	if v == "" { t.Fatalf("third") }
	_ = fmt.Errorf("no assertion")
	for _, want := range []string{"fourth"} { require.Contains(t, v, want) }
	cases := []struct{ want string }{{"fifth"}}
	for _, tt := range cases { t.Run(tt.want, func(t *testing.T) { helper(t, tt.want) }) }
	for _, unused := range []string{"gone through for nothing"} { silent(unused) }
}
`
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600))
	all, err := readTests(dir)
	require.NoError(t, err)
	for _, piece := range []string{"first", `"first", v, "over two lines"`, "second", "third", "fourth", "fifth", "of the helper", "by a closure"} {
		_, err := all["TestX"].requiring(piece)
		require.NoError(t, err, piece)
	}
	for _, piece := range []string{"", "given", "to one that asserts nothing", "no assertion", "gone through for nothing", "sixth"} {
		_, err := all["TestX"].requiring(piece)
		require.ErrorIs(t, err, errNotThere, piece)
	}
	at, err := all["TestX"].requiring("first")
	require.NoError(t, err)
	require.Equal(t, []assertion{{"x_test.go", 9, 10, `require.Equal(t, "first", v, "over two lines")`}}, at)
}

func TestATestThatSeesNothingOfAFieldIsFound(t *testing.T) {
	t.Parallel()
	all, err := readTests("testdata/sample")
	require.NoError(t, err)
	r := runner{root: "../..", timeout: "5m"}
	for _, tt := range []struct {
		test, field, requires, mark, how string
	}{
		{"TestWhatIsWrittenIsRead", "Seen", "seen is %q", proven, "fails without it, by its assertion"},
		{"TestWhatIsWrittenIsRead", "Seen", "other is %q", proven, "fails without it, by another assertion, as sample_test.go:25"},
		{"TestWhatIsWrittenIsRead", "Other", "other is %q", proofless, "passes without it"},
		{"TestACopyHasWhatWasCopied", "Seen", "seen is %q", proven, "fails without it, by its assertion"},
	} {
		of := all[tt.test]
		of.dir = "internal/mutate/testdata/sample"
		require.Equal(t, passed, r.run(of, "").is)
		mark, how, err := r.try(of, field{reflect.TypeFor[sample.Sample](), tt.field}, tt.requires)
		require.NoError(t, err)
		require.Equal(t, tt.mark+" "+tt.how, mark+" "+how, "%s without %s", tt.test, tt.field)
	}
	of := all["TestNothing"]
	of.dir = "internal/mutate/testdata/sample"
	require.Equal(t, skipped, r.run(of, "").is)
}
