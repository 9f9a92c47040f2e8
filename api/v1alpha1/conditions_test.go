package v1alpha1_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// Users program against the constants and read the table.
func TestEveryReasonHasASentenceAndAPlaceInTheTable(t *testing.T) {
	reasons, err := truth.Reasons()
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) < 30 {
		t.Errorf("only %d reasons were found", len(reasons))
	}
	for value, reason := range reasons {
		if !strings.HasPrefix(reason.Sentence, reason.Constant+": ") || !strings.HasSuffix(reason.Sentence, ".\n") {
			t.Errorf("%s is explained with %q, want %q and a sentence", reason.Constant, reason.Sentence, reason.Constant+": ")
		}
		// Those that all kinds may have stand where the first kind is explained.
		pages := []string{cmp.Or(reason.Kind, "webapp")}
		if reason.Kind == "backup" {
			pages = append(pages, "backuprun", "restore") // the three have their reasons in one file
		}
		if !slices.ContainsFunc(pages, func(page string) bool { return explains(t, page, value) }) {
			t.Errorf("docs/spec/%s.md does not say what %s means", strings.Join(pages, ".md, "), value)
		}
	}
}

// explains reports whether the page of a kind names a reason in its table.
func explains(t *testing.T, page, reason string) bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), "`"+reason+"`")
}
