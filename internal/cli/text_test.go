package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrintable(t *testing.T) {
	lines, err := readLines(strings.NewReader("plain \x1b[31mred\x1b[0m\tück\r\n\x07bell\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"plain \ufffd[31mred\ufffd[0m ück", "\ufffdbell"}, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
