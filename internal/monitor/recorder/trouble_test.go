package recorder

import (
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// TestTroubleIsNamed: what keeps the store from writing is reported by the kind of the error, not by its words, and without a path.
func TestTroubleIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a full disk":   {&store.Error{Trouble: store.NoSpace, What: "a", Err: syscall.ENOSPC}, "disk is full"},
		"its limit":     {&store.Error{Trouble: store.NoSpace, What: "b"}, "store.maxBytes"},
		"a damaged one": {&store.Error{Trouble: store.Corrupt, File: "/secret", Err: io.EOF}, "damaged"},
		"may not":       {&store.Error{Trouble: store.ReadOnly, Err: syscall.EROFS}, "may not be written"},
		"errors":        {&store.Error{Trouble: store.Failed, Err: syscall.EIO}, "reports errors"},
		"something":     {io.ErrUnexpectedEOF, "reports errors"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := trouble{clock: clock.RealClock{}, log: slog.New(slog.DiscardHandler)}
			if words := now.now.Words(); words != "" {
				t.Errorf("without trouble: %q", words)
			}
			now.set(test.err)
			if words := now.now.Words(); !strings.Contains(words, test.want) || strings.Contains(words, "secret") {
				t.Errorf("%q, want %q", words, test.want)
			}
			now.clear()
			if words := now.now.Words(); words != "" {
				t.Errorf("after it: %q", words)
			}
		})
	}
}
