package truth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// without are reasons of the API that no fault of the truth table has, and why.
var without = []struct {
	why string
	// tests are folders with tests that name every one of the reasons. Empty: nobody does, and a reason that a test names has to be
	// moved.
	tests   []string
	reasons []string
}{
	{
		why:   "nothing is wrong: status says so, or that something is on its way",
		tests: []string{"internal", "test/e2e"},
		reasons: []string{
			"ReasonAccepted", "ReasonAsExpected", "ReasonDrillPassed", "ReasonEvaluating", "ReasonNoDrill", "ReasonNoRetention",
			"ReasonNoRun", "ReasonNoSchedule", "ReasonPolicyAccepted", "ReasonProgrammed", "ReasonQueued", "ReasonQuiesced", "ReasonReleasing",
			"ReasonReplicasReady", "ReasonResolvedRefs", "ReasonRestored", "ReasonRetentionApplied", "ReasonRetentionPending",
			"ReasonRolledBack", "ReasonRollingBack", "ReasonRolloutComplete", "ReasonScaledToZero", "ReasonSuspended", "ReasonTakingSnapshot",
			"ReasonTransferring", "ReasonVerified", "ReasonVerifying", "ReasonWithinObjective",
		},
	},
	{
		why:     "the same, and no test names it",
		reasons: []string{"ReasonHookRunning", "ReasonReviewing", "ReasonVolumeSnapshotTaken"},
	},
	{
		why:     "an event alone, of no condition",
		tests:   []string{"internal"},
		reasons: []string{"ReasonDriftRepaired"},
	},
	{
		why:     "the same, and no test names it",
		reasons: []string{"ReasonKeyMade", "ReasonSlotMissed"},
	},
	{
		why:   "test/e2e causes it on real pods: it needs several replicas, the webhook gone, or a copy that was damaged",
		tests: []string{"test/e2e", "test/csi", "test/postgres"},
		reasons: []string{
			"ReasonCorrupt", "ReasonDrillFailed", "ReasonDumpFailed", "ReasonHookFailed", "ReasonHookNotAllowed", "ReasonHostConflict",
			"ReasonInvalidImageName", "ReasonInvalidRegex", "ReasonNoVolumeSnapshot", "ReasonNoVolumeSnapshotClass", "ReasonReplicaBehind",
			"ReasonReplicaStale", "ReasonRepositoryNotFound", "ReasonRolloutFailed", "ReasonSourceEmpty", "ReasonSourceUnreadable",
			"ReasonTargetNotEmpty",
		},
	},
	{
		why:   "the schema or the webhook refuses it, so that nobody meets it with a cluster that works",
		tests: []string{"internal"},
		reasons: []string{
			"ReasonDuplicateName", "ReasonExpressionInvalid", "ReasonInvalid", "ReasonInvalidRoute", "ReasonInvalidStream",
			"ReasonPortConflict", "ReasonUnsupportedProtocol",
		},
	},
	{
		why:   "it takes a server that fails, a node or an operator that is lost, or hours: tests against a real API server bring it about",
		tests: []string{"internal", "cmd"},
		reasons: []string{
			"ReasonAPIError", "ReasonAffinityNotShared", "ReasonBackupReplaced", "ReasonContentDiffers", "ReasonCopyTooOld",
			"ReasonDeadlineExceeded", "ReasonDrillCommandFailed", "ReasonEvicted", "ReasonForbidden", "ReasonHalfRestored",
			"ReasonHookInterrupted", "ReasonHookLeft", "ReasonHooksDisabled", "ReasonHostNotExposed", "ReasonInvalidCACertificates",
			"ReasonKeyMissing", "ReasonLimitNotShared", "ReasonMassDeletion", "ReasonMountFailed", "ReasonMoverFailed",
			"ReasonNoCopy", "ReasonNoSpace", "ReasonNothingCompared", "ReasonOtherController",
			"ReasonParentNotFound", "ReasonParentNotWatched", "ReasonParentRefused", "ReasonPodFailed", "ReasonPodGone", "ReasonPodLost",
			"ReasonPodPending", "ReasonPolicyConflicted", "ReasonPolicyNotEnforced", "ReasonPolicyTooManyHealthChecks",
			"ReasonPortUnavailable", "ReasonProgressDeadlineExceeded", "ReasonProviderNotFetched", "ReasonReplicasNotReady",
			"ReasonRepositoryBusy", "ReasonRepositoryLeft", "ReasonRetentionFailed", "ReasonSandboxFailed", "ReasonSnapshotMissing",
			"ReasonTargetBusy", "ReasonTemplateRefused", "ReasonTooMuchToTell", "ReasonVolumeResizeRefused", "ReasonVolumeSnapshotFailed",
			"ReasonWrongRepository",
		},
	},
	{
		why:     "the monitor reads the kinds for rules every 10 s, and the containers of a workload are read once: not told within 2 s",
		tests:   []string{"internal"},
		reasons: []string{"ReasonContainerNotFound", "ReasonKindNotFound"},
	},
	{
		why: "nothing causes it by that name yet",
		reasons: []string{
			"ReasonDestinationNotEmpty", "ReasonFileMissing", "ReasonLinkDiffers", "ReasonManifestDiffers",
			"ReasonManifestMissing", "ReasonModeDiffers", "ReasonNotPermitted", "ReasonNothingRestored", "ReasonSnapshotDiffers",
			"ReasonSnapshotStale", "ReasonTargetUnwritable", "ReasonTooManyHosts", "ReasonVolumeInUse", "ReasonVolumeNotBound",
		},
	},
}

const root = "../.."

// Whoever adds a reason adds a fault that leads to it, or says why not.
func TestEveryReasonHasAFaultOrAWhyNot(t *testing.T) {
	defined, caused := definedReasons(t), causedReasons(t)
	words, accounted := map[string]bool{}, map[string]bool{}
	for constant, value := range defined {
		words[constant], words[value] = true, true
	}
	tests := namesOfTests(t, words)
	for _, some := range without {
		for _, reason := range some.reasons {
			value, known := defined[reason]
			switch {
			case !known:
				t.Errorf("%s is no reason of the API any more: take it out of the list", reason)
			case caused[reason]:
				t.Errorf("a fault has %s: take it out of the list", reason)
			case accounted[reason]:
				t.Errorf("%s is in the list twice", reason)
			}
			accounted[reason] = true
			in := below(slices.Concat(tests[reason], tests[value]), some.tests)
			if len(some.tests) > 0 && len(in) == 0 {
				t.Errorf("no test in %v names %s, which is said to be tested there (%s)", some.tests, reason, some.why)
			}
			if len(some.tests) == 0 && len(in) > 0 {
				t.Errorf("tests in %v name %s, which is said to have none: move it in the list", in, reason)
			}
		}
	}
	for reason := range defined {
		if !caused[reason] && !accounted[reason] {
			t.Errorf("no fault in test/truth has %s: add one, or say in the list why there is none", reason)
		}
	}
	if len(defined) < 150 || len(caused) < 30 {
		t.Errorf("%d reasons and %d of faults were found: the test does not see them", len(defined), len(caused))
	}
}

// definedReasons are the values of the reasons that the API defines, by constant.
func definedReasons(t *testing.T) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	files, err := filepath.Glob(root + "/api/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				reasons[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
			return true
		})
	}
	return reasons
}

// causedReasons are the constants that the faults name.
func causedReasons(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_faults_test.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons, constant := map[string]bool{}, regexp.MustCompile(`\bslipwayv1alpha1\.(Reason\w+)`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range constant.FindAllSubmatch(text, -1) {
			reasons[string(found[1])] = true
		}
	}
	return reasons
}

// namesOfTests are the folders whose tests, with what they expect, have a word, for every word that is asked for.
func namesOfTests(t *testing.T, wanted map[string]bool) map[string][]string {
	t.Helper()
	folders := map[string][]string{}
	add := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		ofTest := strings.HasSuffix(path, "_test.go") || (strings.Contains(folder, "testdata") && strings.HasSuffix(path, ".yaml"))
		if !ofTest || folder == "test/truth" {
			return nil
		}
		text, err := os.ReadFile(path)
		for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
			if wanted[word] && !slices.Contains(folders[word], folder) {
				folders[word] = append(folders[word], folder)
			}
		}
		return err
	}
	for _, top := range []string{"internal", "cmd", "test"} {
		if err := filepath.WalkDir(filepath.Join(root, top), add); err != nil {
			t.Fatal(err)
		}
	}
	return folders
}

// below are the folders that are in one of some, or all where there are none.
func below(folders, tops []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		return len(tops) > 0 && !slices.ContainsFunc(tops, func(top string) bool { return folder == top || strings.HasPrefix(folder, top+"/") })
	})
}
