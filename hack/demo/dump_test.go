package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestADumpIsTheSameEachTimeAndFailsWhenItIsTold(t *testing.T) {
	getenv := func(string) string { return "a note" }
	dump := func(arguments ...string) (string, error) {
		var output strings.Builder
		err := dumpCommand(arguments, getenv, &output)
		return output.String(), err
	}
	whole, err := dump("1000")
	if err != nil || strings.Count(whole, "\n") != 1001 || !strings.HasPrefix(whole, `-- 1000 lines, note "a note", user `+strconv.Itoa(os.Getuid())) {
		t.Fatalf("got %d bytes, %v", len(whole), err)
	}
	if again, err := dump("1000"); err != nil || again != whole {
		t.Errorf("got another dump, %v", err)
	}
	part, err := dump("1000", "90")
	if !errors.Is(err, errDump) || strings.Count(part, "\n") != 901 || !strings.HasPrefix(whole, part) {
		t.Errorf("got %d bytes, %v", len(part), err)
	}
	for _, arguments := range [][]string{{}, {"x"}, {"-1"}, {"1", "2", "3"}, {"1", "101"}, {"1", "x"}} {
		if output, err := dump(arguments...); err == nil || errors.Is(err, errDump) || output != "" {
			t.Errorf("%q: got %q, %v", arguments, output, err)
		}
	}
}
