package engine

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// Who may write to folders of a target, and not to its root, is told what the root has to take, and how.
func TestWhatTakesNoMarkSaysWhatToDo(t *testing.T) {
	const mark = markPrefix + "one"
	tests := map[string]struct {
		err     error
		kind    Kind
		advised bool
	}{
		"the root is another user's": {&fs.PathError{Op: "openat", Path: mark, Err: syscall.EACCES}, KindTargetUnwritable, true},
		"a right is missing":         {&fs.PathError{Op: "openat", Path: mark, Err: syscall.EPERM}, KindTargetUnwritable, true},
		"the volume is only read":    {&fs.PathError{Op: "openat", Path: mark, Err: syscall.EROFS}, KindTargetUnwritable, false},
		"the volume is full":         {&fs.PathError{Op: "openat", Path: mark, Err: syscall.ENOSPC}, KindNoSpace, false},
		"something has the name":     {&fs.PathError{Op: "openat", Path: mark, Err: syscall.EEXIST}, KindTargetNotEmpty, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := markError(mark, tc.err)
			wantKind(t, err, tc.kind)
			if !strings.Contains(err.Error(), mark) {
				t.Errorf("the mark is not named: %v", err)
			}
			if got := strings.Contains(err.Error(), "spec.mover.runAs"); got != tc.advised {
				t.Errorf("it says to run as root: %v, want %v: %v", got, tc.advised, err)
			}
		})
	}
}
