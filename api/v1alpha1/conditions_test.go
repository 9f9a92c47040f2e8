package v1alpha1_test

import (
	"cmp"
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
	for value, reason := range reasons {
		if !strings.HasPrefix(reason.Sentence, reason.Constant+": ") || !strings.HasSuffix(reason.Sentence, ".\n") {
			t.Errorf("%s is explained with %q, want %q and a sentence", reason.Constant, reason.Sentence, reason.Constant+": ")
		}
		// Those that all kinds may have stand where the first kind is explained.
		page := cmp.Or(reason.Kind, "webapp") + ".md"
		table, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(table), "`"+value+"`") {
			t.Errorf("docs/spec/%s does not say what %s means", page, value)
		}
	}
}
