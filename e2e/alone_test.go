package e2e

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alone are the tests that change what all VMIs of their cluster depend on, and so run
// beside no other one there. hack/test runs them at a cluster of their own, beside the
// others.
var alone = []string{
	"TestADrainMovesEveryVMIAndEnds",
	"TestAVMIWithAnOutdatedLauncherIsMoved",
	"TestAGuestDoesNotNoticeThatTheControllerIsKilled",
	"TestAGuestDoesNotNoticeThatTheHandlerIsKilledAndReplaced",
	"TestAGuestRunsOnWithoutItsRuntimeAndEndsWithItsNode",
	"TestAGuestWhoseVMICannotBeDecodedRunsOn",
	"TestAHandlerThatIsReplacedWhileAGuestMovesKeepsItsVMIsReady",
	"TestAVMIStartsWhenThereIsRoomAgain",
	"TestAVMIThatMakesRoomForAnotherPodSaysSo",
	"TestAVMIWhoseNodeDoesNotRespondSaysSoAndEndsWhenItIsFenced",
	"TestAVMIWhoseNodeHasNoHandlerSaysSo",
	"TestAVMIWhoseNodeRestartsSaysSo",
	"TestAnEvictionIsAnsweredWhileTheControllersMove",
	"TestContainerDisksAreCopiedWhereTheClusterHasNoImageVolumes",
	"TestNoSeriesOutlivesItsVMI",
	"TestTheConfigurationReachesGuestsAndComponents",
	"TestTheStatusReportsTheGuestsAgent",
}

// choosePart lets the tests of one part run: those that run alone, or all others. Without
// a name of a part, all run.
func choosePart(part string) error {
	choice := ""
	switch part {
	case "":
		return nil
	case "alone":
		choice = "test.run"
	case "others":
		choice = "test.skip"
	default:
		return fmt.Errorf("there is no part %s of the end-to-end tests", part)
	}
	flag.Parse()
	if f := flag.Lookup(choice); f.Value.String() != "" {
		return fmt.Errorf("-%s cannot be given with a part of the tests", choice)
	}
	return flag.Set(choice, "^("+strings.Join(alone, "|")+")$")
}

func TestTheTestsThatRunAloneAreThoseThatAreNotParallel(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var serial []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		if slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
			return slices.ContainsFunc(c.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:build ") })
		}) {
			continue // it is not compiled for make test
		}
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" && !isParallel(fn) {
				serial = append(serial, fn.Name.Name)
			}
		}
	}
	require.ElementsMatch(t, alone, serial)
}

// isParallel reports whether a statement of the test itself calls t.Parallel.
func isParallel(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Body.List, func(s ast.Stmt) bool {
		e, is := s.(*ast.ExprStmt)
		if !is {
			return false
		}
		call, is := e.X.(*ast.CallExpr)
		if !is {
			return false
		}
		selector, is := call.Fun.(*ast.SelectorExpr)
		return is && selector.Sel.Name == "Parallel"
	})
}
