package clitest

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// Golden compares what was printed with testdata/name.
func Golden(t *testing.T, name string, write func(out *bytes.Buffer) error) {
	t.Helper()
	got := &bytes.Buffer{}
	if err := write(got); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", name), got.String())
}
