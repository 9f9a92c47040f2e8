package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// TestOneMoreFieldIsNoPlural looks at a line that counts what may be one.
func TestOneMoreFieldIsNoPlural(t *testing.T) {
	out := &bytes.Buffer{}
	Painter{}.Fields(out, make([]change.Field, maxFields+1))
	if !strings.Contains(out.String(), "... and 1 more field\n") {
		t.Error(out)
	}
}
