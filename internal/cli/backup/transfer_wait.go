package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/clock"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// waitOptions are the flags of a command that starts a transfer.
type waitOptions struct {
	*command.Program
	output  command.Format
	wait    bool
	timeout time.Duration
}

func (o *waitOptions) addFlags(cmd *cobra.Command) {
	o.output.AddFlag(cmd)
	cmd.Flags().BoolVarP(&o.wait, "wait", "w", false, "show the progress, and end when it has completed or failed")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait, how long to wait at most; 0: no limit")
}

func (o *waitOptions) check() error {
	if o.timeout < 0 || (o.timeout > 0 && !o.wait) {
		return command.UsageErrorf("--timeout must be positive, and needs --wait")
	}
	return nil
}

// started tells of a transfer that was just made, and waits for its end when that is asked for.
func (o *waitOptions) started(ctx context.Context, made runtime.Object, name string, lister command.Lister) error {
	first, ok := transferOf(made)
	if !ok {
		return fmt.Errorf("%T is neither a BackupRun nor a Restore", made)
	}
	s := &transferScreen{out: o.Streams.Out, output: o.output, terminal: o.Terminal, clock: o.Clock, start: o.Clock.Now()}
	switch {
	case o.output == command.FormatTable:
		if _, err := fmt.Fprintf(o.Streams.Out, "%s created\n", first.Object); err != nil {
			return err
		}
	case !o.wait:
		return o.output.Print(o.Streams.Out, first)
	}
	if !o.wait {
		return nil
	}
	watchCtx, cancel := watchtools.ContextWithOptionalTimeout(ctx, o.timeout)
	defer cancel()
	last, err := awaitTransfer(watchCtx, made, name, lister, s.show)
	s.close()
	switch {
	case err == nil && last.Phase == slipwayv1alpha1.BackupFailed:
		return &command.ExitError{
			Code:    command.ExitNotReady,
			Message: fmt.Sprintf("error: %s failed: %s", last.Object, command.Because(last.Reason, last.Message)),
		}
	case err == nil && o.output == command.FormatTable:
		_, err = fmt.Fprintf(o.Streams.Out, "%s completed: %s\n", last.Object, command.Printable(last.outcome))
		return err
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &command.ExitError{Code: command.ExitInterrupted}
	case errors.Is(watchCtx.Err(), context.DeadlineExceeded):
		return &command.ExitError{
			Code: command.ExitTimeout, Message: fmt.Sprintf("error: %s has not ended after %s: %s", last.Object, o.timeout, last.state()),
		}
	default:
		return err
	}
}

// awaitTransfer calls show with a transfer, and again after each change, until it has ended.
func awaitTransfer(
	ctx context.Context, made runtime.Object, name string, lister command.Lister, show func(transfer) error,
) (transfer, error) {
	last, _ := transferOf(made)
	gone := &command.ExitError{Code: command.ExitNotReady, Message: fmt.Sprintf("error: %s was deleted", last.Object)}
	_, err := watchtools.UntilWithSync(ctx, command.WatchOne(name, lister), made,
		func(store cache.Store) (bool, error) {
			if len(store.List()) == 0 {
				return false, gone
			}
			return false, nil
		},
		func(event watch.Event) (bool, error) {
			switch event.Type {
			case watch.Deleted:
				return false, gone
			case watch.Error:
				return false, fmt.Errorf("watch %s: %w", last.Object, apierrors.FromObject(event.Object))
			}
			seen, ok := transferOf(event.Object)
			if !ok {
				return false, nil
			}
			if seen.uid != last.uid {
				return false, gone // another object of that name
			}
			last = seen
			return last.ended(), show(last)
		})
	return last, err
}

// transferScreen shows the changes of a transfer: a line for each, and on a terminal how much is done in one line that is
// rewritten.
type transferScreen struct {
	out      io.Writer
	output   command.Format
	terminal bool
	clock    clock.PassiveClock
	start    time.Time
	state    string
	amount   string
	// drawn reports whether the cursor is behind a bar.
	drawn bool
	err   error
}

// clearLine takes the cursor to the start of the line, and clears it.
const clearLine = "\r\x1b[K"

func (s *transferScreen) show(t transfer) error {
	now := s.clock.Now()
	state, amount := t.state(), t.amount(now)
	if state == s.state && amount == s.amount {
		return nil
	}
	if s.output != command.FormatTable {
		s.state, s.amount = state, amount
		return s.output.PrintNext(s.out, t)
	}
	if state != s.state && (!t.ended() || s.state == "") {
		s.close()
		s.printf("%7.1fs  %s\n", now.Sub(s.start).Seconds(), state)
	}
	switch {
	case amount == "" || amount == s.amount && !s.terminal:
	case s.terminal:
		s.printf("%s          %s %s", clearLine, bar(t.Progress.Percent), amount)
		s.drawn = true
	default:
		s.printf("%7.1fs  %s\n", now.Sub(s.start).Seconds(), amount)
	}
	s.state, s.amount = state, amount
	return s.err
}

// close removes the bar.
func (s *transferScreen) close() {
	if s.drawn {
		s.printf("%s", clearLine)
		s.drawn = false
	}
}

// printf remembers the first error.
func (s *transferScreen) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.out, format, args...)
	}
}
