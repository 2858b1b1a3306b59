package archtest

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExecutorsHandleEveryAction(t *testing.T) {
	all := files(t)
	sealed := SealedIn(all)
	require.NotEmpty(t, sealed)
	for _, s := range sealed {
		require.NotEmpty(t, s.Types, "%s: no type implements it", s)
		executors := 0
		for _, f := range all {
			n, faults := f.Unhandled(s)
			executors += n
			for _, fault := range faults {
				t.Error(fault)
			}
		}
		require.NotZero(t, executors, "%s: no type switch handles it", s)
	}
}

const actions = `
type Action interface {
	fmt.Stringer
	action()
}
type Start struct{}
type Write[T any] struct{ Object T }
type Force struct{ Start }
func (Start) action() {}
func (*Write[T]) action() {}
`

func TestAnExecutorWithoutAnActionOrADefaultIsFound(t *testing.T) {
	source := func(path, text string) File {
		s, err := parser.ParseFile(token.NewFileSet(), path, "package x\n"+text, parser.SkipObjectResolution)
		require.NoError(t, err)
		return File{Path: path, syntax: s}
	}
	declared := source("handler/plan.go", actions)
	for name, tt := range map[string]struct {
		path, text string
		switches   int
		want       string
	}{
		"all cases and a default": {"handler/act.go",
			`func do(a Action) error { switch a.(type) { case Start, Force: case *Write[int]: default: return fmt.Errorf("unknown") }; return nil }`, 1, ""},
		"no case for an action": {"handler/act.go",
			`func do(a Action) error { switch a.(type) { case Start: case *Write[int]: default: return fmt.Errorf("unknown") }; return nil }`, 1, "no case for Force"},
		"no default": {"handler/act.go",
			`func do(a Action) { switch a.(type) { case Start: case *Write[int]: case Force: } }`, 1, "no default that makes an error"},
		"a default without an error": {"handler/act.go",
			`func do(a Action) { switch a.(type) { case Start: case *Write[int]: case Force: default: return } }`, 1, "no default that makes an error"},
		"another package under another name": {"handler/controller/act.go",
			`import plan "` + Module + `/handler"
			func do(a plan.Action) { switch a.(type) { case plan.Start: } }`, 1, "no case for Force, Write"},
		"a switch over something else": {"handler/controller/act.go",
			`import "` + Module + `/handler"
			func do(a any) { switch a.(type) { case int: case launcher.Start: } }`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := source(tt.path, tt.text)
			sealed := SealedIn([]File{declared, f})
			require.Equal(t, []Sealed{{"handler", "Action", []string{"Force", "Start", "Write"}}}, sealed)
			n, faults := f.Unhandled(sealed[0])
			require.Equal(t, tt.switches, n)
			if tt.want == "" {
				require.Empty(t, faults)
			} else {
				require.Contains(t, strings.Join(faults, "\n"), tt.want)
			}
		})
	}
}
