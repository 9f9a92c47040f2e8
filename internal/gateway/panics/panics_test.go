package panics_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// closed notes that it was closed.
type closed bool

func (c *closed) Close() error {
	*c = true
	return nil
}

func TestAPanicIsCaughtAndReported(t *testing.T) {
	var was closed
	var result error
	for name, run := range map[string]func(panics.Reporter){
		"Catch":        func(r panics.Reporter) { defer r.Catch("work"); panic("a defect") },
		"CatchClosing": func(r panics.Reporter) { defer r.CatchClosing("work", &was); panic("a defect") },
		"CatchError":   func(r panics.Reporter) { defer r.CatchError("work", &result); panic("a defect") },
		"Abort": func(r panics.Reporter) {
			defer func() {
				cause := recover()
				if err, is := cause.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("Abort: panics with %v", cause)
				}
			}()
			defer r.Abort("work")
			panic("a defect")
		},
	} {
		var got []string
		run(func(doing string, cause any, stack []byte) {
			got = append(got, fmt.Sprint(doing, ": ", cause))
			if !bytes.Contains(stack, []byte("panics_test.go")) {
				t.Errorf("%s: the stack does not say where:\n%s", name, stack)
			}
		})
		if diff := cmp.Diff([]string{"work: a defect"}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if !was {
		t.Error("CatchClosing has not closed")
	}
	if !errors.Is(result, panics.ErrPanicked) {
		t.Errorf("CatchError: the result is %v", result)
	}
}

func TestWithoutAPanicNothingIsReported(t *testing.T) {
	var was closed
	var result error
	report := panics.Reporter(func(doing string, cause any, _ []byte) { t.Errorf("%s: %v", doing, cause) })
	func() {
		defer report.Abort("work")
		defer report.Catch("work")
		defer report.CatchClosing("work", &was)
		defer report.CatchError("work", &result)
	}()
	if was || result != nil {
		t.Errorf("closed %v, the result is %v", was, result)
	}
	// That a handler ends its request in this way is no defect.
	func() {
		defer func() { _ = recover() }()
		defer report.Abort("work")
		panic(http.ErrAbortHandler)
	}()
}

func TestNoReporterCatchesNothing(t *testing.T) {
	var none panics.Reporter
	var was closed
	var result error
	for name, run := range map[string]func(){
		"Catch":        func() { defer none.Catch("work"); panic("a defect") },
		"CatchClosing": func() { defer none.CatchClosing("work", &was); panic("a defect") },
		"CatchError":   func() { defer none.CatchError("work", &result); panic("a defect") },
		"Abort":        func() { defer none.Abort("work"); panic("a defect") },
	} {
		func() {
			defer func() {
				if cause := recover(); cause != "a defect" {
					t.Errorf("%s: panics with %v", name, cause)
				}
			}()
			run()
		}()
	}
}

// Who can cause a panic can cause many. Each counts, and the log has one of each work once in a while.
func TestThePanicsOfOneWorkAreLoggedOnceInAWhile(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	var text bytes.Buffer
	l := panics.NewLog(slog.New(slog.NewTextHandler(&text, nil)), clock)
	report := func(doing string, cause any) { l.Report(doing, cause, []byte("the stack")) }
	for i := range 100 {
		report("work", fmt.Sprint("a defect ", i))
		report("other work", "another one")
	}
	clock.Step(10 * time.Second)
	report("other work", "another one")
	if lines := strings.Count(text.String(), "\n"); lines != 3 || !strings.Contains(text.String(), `doing=work panic="a defect 0" stack="the stack"`) {
		t.Errorf("%d lines:\n%s", lines, &text)
	}
	if got := l.Count(); got != 201 {
		t.Errorf("%d are counted", got)
	}
}
