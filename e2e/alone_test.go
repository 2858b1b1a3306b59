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

// longest are tests that take longer than others, and of which a shorter one has the same
// feature, or a sweep elsewhere the same faults. hack/test leaves them out where the host is too
// slow for all before the limit of .ci/run.
var longest = []string{
	"TestAClaimForManyNodesMovesAndOneForASingleNodeDoesNot",
	"TestADebianGuestIsConfiguredByCloudInitAndItsAgent",
	"TestADefaultNetworkOfMultusTakesThePlaceOfTheClustersBesideALinkThatIsDown",
	"TestAGuestHasACPUOfItsNodeForItself",
	"TestAGuestStartedByUEFIHasTheSameTPMAfterAStop",
	"TestAGuestThatMemoryCannotBeSentOfInTimeStaysAndIsLive",
	"TestAGuestThatMovesKeepsItsTPMAndItsFirmware",
	"TestAGuestThatMovesPowersOffOnceWhenItIsToEnd",
	"TestAGuestWhoseImageIsAnotherOnTheOtherNodeStays",
	"TestAHandlerThatIsReplacedWhileAGuestMovesKeepsItsVMIsReady",
	"TestAHorizontalPodAutoscalerScalesASet",
	"TestAKernelSaysThatSecureBootIsOn",
	"TestALauncherThatHangsBeforeItsGuestRunsIsSaidAndEndsFailed",
	"TestALivenessProbeEndsAVMIWhoseAgentIsGone",
	"TestAMigrationThatIsDeletedLeavesTheGuestAsItIs",
	"TestAPausedVMIIsOutOfItsServices",
	"TestAReadinessProbeFollowsTheAnswersOfItsGuest",
	"TestASetIsScaledWhileItsGuestsAreKilled",
	"TestASetOfABrokenTemplateTriesOneVMIAtATime",
	"TestAVMIWhoseNodeHasNoHandlerSaysSo",
	"TestAVMIWithAnOutdatedLauncherIsMoved",
	"TestAVMWhoseLaunchersAreKilledWhileItMovesStartsWithItsState",
	"TestAnEvictionIsAnsweredWhileTheControllersMove",
	"TestAnIdleGuestThatMovesAnswersUntilTheSwitch",
	"TestContainerDisksAreCopiedWhereTheClusterHasNoImageVolumes",
	"TestCrashes",
	"TestEveryLegalNameRuns",
	"TestGuestsOfTwoNodesReachEachOtherOnTheNetworksOfMultusAsSoonAsTheyAreDefined",
	"TestNoSeriesOutlivesItsVMI",
	"TestTheStreamsOfAGuestSayWhereItHasMovedTo",
}

// choosePart lets the tests of one part run: those that run alone, or all others. Without
// a name of a part, all run. If brief, the longest are left out of a part.
func choosePart(part string, brief bool) error {
	var run, skip []string
	switch part {
	case "":
		return nil
	case "alone":
		run = alone
	case "others":
		skip = alone
	default:
		return fmt.Errorf("there is no part %s of the end-to-end tests", part)
	}
	if brief {
		skip = slices.Concat(skip, longest)
	}
	flag.Parse()
	for choice, names := range map[string][]string{"test.run": run, "test.skip": skip} {
		if f := flag.Lookup(choice); f.Value.String() != "" {
			return fmt.Errorf("-%s cannot be given with a part of the tests", choice)
		}
		if len(names) == 0 {
			continue
		}
		if err := flag.Set(choice, "^("+strings.Join(names, "|")+")$"); err != nil {
			return err
		}
	}
	return nil
}

func TestTheTestsThatRunAloneAreThoseThatAreNotParallel(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var serial, all []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		if slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
			return slices.ContainsFunc(c.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:build ") })
		}) {
			continue // it is not compiled for make test
		}
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			all = append(all, fn.Name.Name)
			if !isParallel(fn) {
				serial = append(serial, fn.Name.Name)
			}
		}
	}
	require.ElementsMatch(t, alone, serial)
	require.Subset(t, all, longest, "there is no such test")
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
