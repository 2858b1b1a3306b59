package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
	of := all["TestWhatIsWrittenIsRead"]
	of.dir = "internal/mutate/testdata/sample"
	require.Equal(t, passed, r.run(of, "").is)
	for name, tt := range map[string]struct{ requires, mark, how string }{
		"Seen":  {"seen is %q", proven, "fails without it, by its assertion"},
		"Other": {"other is %q", proofless, "passes without it"},
	} {
		mark, how, err := r.try(of, field{of: reflect.TypeFor[sample.Sample](), name: name}, tt.requires)
		require.NoError(t, err)
		require.Equal(t, tt.mark+" "+tt.how, mark+" "+how, name)
	}
}

func TestWhatATestSaysIsUnderstood(t *testing.T) {
	at := []assertion{{file: "x_test.go", from: 9, to: 11}}
	for name, tt := range map[string]struct {
		text string
		by   bool
	}{
		"its assertion":     {"    x_test.go:10: it is not", true},
		"by a helper":       {"\tError Trace:\t/a/b_test.go:7\n\t\t/a/x_test.go:9", true},
		"another assertion": {"    x_test.go:12: it is not", false},
		"another file":      {"    y_test.go:10: it is not", false},
	} {
		require.Equal(t, tt.by, outcome{text: tt.text}.by(at), name)
	}
	require.Equal(t, "x_test.go:12", outcome{text: "--- FAIL\n    x_test.go:12: no"}.first())
}

func TestAFieldOfATypeHasNoNameAndIsNotCopied(t *testing.T) {
	f := field{of: reflect.TypeFor[sample.Sample](), name: "Seen"}
	text, err := os.ReadFile("testdata/sample/sample.go")
	require.NoError(t, err)
	text, err = f.unnamed(text)
	require.NoError(t, err)
	require.Contains(t, string(text), "Seen  string `json:\"-\"`\n\tOther string `json:\"other,omitempty\"`")
	text, err = f.uncopied(text)
	require.NoError(t, err)
	require.Contains(t, string(text), "*out = *in\n\tvar none Sample\n\tout.Seen = none.Seen\n}")
}

func TestWhatWritesAFieldWritesItNoMore(t *testing.T) {
	f := field{of: reflect.TypeFor[sample.Sample](), name: "Seen"}
	for before, after := range map[string]string{
		`x.Seen = f(y)`:                              `_ = f(y)`,
		`x.Seen, z = f(), 1`:                         `_, z = f(), 1`,
		`_ = p.Sample{Seen: "a"}`:                    `_ = p.Sample{}`,
		`_ = Sample{Seen: 1, Other: 2}`:              `_ = Sample{ Other: 2}`,
		`_ = &Sample{Seen: f(y)}`:                    `_ = &Sample{Seen: NONE(f(y))}`,
		`_ = []*Sample{{Seen: "a"}}`:                 `_ = []*Sample{{}}`,
		`_ = map[string]Sample{"Seen": {Seen: "a"}}`: `_ = map[string]Sample{"Seen": {}}`,
		`_ = Other{Seen: "a"}`:                       `_ = Other{Seen: "a"}`,
		`x.Seen.More = 1`:                            `x.Seen.More = 1`,
		`Seen := x.Seen`:                             `Seen := x.Seen`,
	} {
		got, err := f.unwritten([]byte("package p\n\nfunc _() { " + before + " }\n"))
		require.NoError(t, err)
		require.Contains(t, regexp.MustCompile(`none[0-9a-f]{8}`).ReplaceAllString(string(got), "NONE"), "func _() { "+after+" }\n")
	}
	_, err := f.unwritten([]byte("Seen"))
	require.Error(t, err)
}
