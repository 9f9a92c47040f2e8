package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// offline runs a command line that needs no cluster. add adds the commands that there are.
func offline(t *testing.T, add func(*program, *cobra.Command), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return offlineReading(t, &bytes.Buffer{}, add, args...)
}

// offlineReading is offline with a standard input.
func offlineReading(t *testing.T, in io.Reader, add func(*program, *cobra.Command), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	code = runProgram(t.Context(), Options{
		Version: "v1.2.3",
		Streams: genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut},
		Clock:   clocktesting.NewFakePassiveClock(now),
	}, args, add)
	return code, out.String(), errOut.String()
}
