package clitest

import (
	"bytes"
	"io"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

// Offline runs a command line that needs no cluster. add adds the commands that there are.
func Offline(t *testing.T, add func(*command.Program, *cobra.Command), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return OfflineReading(t, &bytes.Buffer{}, add, args...)
}

// OfflineReading is Offline with a standard input.
func OfflineReading(
	t *testing.T, in io.Reader, add func(*command.Program, *cobra.Command), args ...string,
) (code int, stdout, stderr string) {
	t.Helper()
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	code = command.Run(t.Context(), command.Options{
		Version: "v1.2.3",
		Streams: genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut},
		Clock:   clocktesting.NewFakePassiveClock(Now),
	}, args, add)
	return code, out.String(), errOut.String()
}
