package cli

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// offline runs a command line that needs no cluster.
func offline(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	code = Run(t.Context(), Options{
		Version: "v1.2.3",
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut},
		Clock:   clocktesting.NewFakePassiveClock(now),
	}, args)
	return code, out.String(), errOut.String()
}
