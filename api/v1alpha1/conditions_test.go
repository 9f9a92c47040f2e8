package v1alpha1_test

import (
	"os"
	"path/filepath"
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
	table, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", "webapp.md"))
	if err != nil {
		t.Fatal(err)
	}
	for value, reason := range reasons {
		if !strings.HasPrefix(reason.Sentence, reason.Constant+": ") || !strings.HasSuffix(reason.Sentence, ".\n") {
			t.Errorf("%s is explained with %q, want %q and a sentence", reason.Constant, reason.Sentence, reason.Constant+": ")
		}
		if !strings.Contains(string(table), "`"+value+"`") {
			t.Errorf("docs/spec/webapp.md does not say what %s means", value)
		}
	}
}
