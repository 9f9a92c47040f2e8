// Command testsum turns the event stream of `go test -json` into something to read, and counts what happened:
//
//	go test -json ./... | go run ./hack/testsum -counts counts.txt
//
// It prints a line per package, every failure with its whole output, and the slowest tests. It exits 1 when anything failed,
// when a package did not build, and when no test ran at all.
//
// gotestsum (v1.13.0) was tried in its place, with the streams of main_test.go. Its options and its file of events do not do
// what the last line of .ci/run and the gate need:
//
//   - a test with subtests is counted through them: gotestsum counts each parent too, and a failed subtest two levels down as
//     three failures;
//   - a data race that is found while another test passes is printed: gotestsum says that the package failed, and not why;
//   - a run without a test fails: gotestsum returns the exit code of the command, and takes that of a pipe of several `go test`
//     runs as it is;
//   - one stream has several modules, builds that fail among them, and every failure is a line in the file of counts;
//   - what tests measure is shown ("measured: ...").
//
// What would be left is a program of ours that reads its file of events, beside a dependency.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	// An interrupt ends the tests. testsum goes on, to print what they still write.
	signal.Ignore(os.Interrupt)
	code, err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	os.Exit(code)
}

// run reads the events from in, writes what a person reads to out, and returns the exit code.
func run(args []string, in io.Reader, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	counts := flags.String("counts", "", "file to append a line for each failure and one line of counts to")
	slow := flags.Duration("slow", 5*time.Second, "list tests that took at least this long")
	each := flags.Bool("each", false, "print a line for every top-level test as it ends, and what tests log as \"measured: ...\"")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}

	s := newSummary(out, *slow, *each)
	if err := s.read(in); err != nil {
		return 1, err
	}
	s.finish()

	if *counts != "" {
		if err := appendLines(*counts, append(s.failures, s.total.String())); err != nil {
			return 1, err
		}
	}
	if s.total.passed+s.total.failed == 0 {
		return 1, fmt.Errorf("no test was executed (%d skipped)", s.total.skipped)
	}
	if s.total.failed > 0 {
		return 1, nil
	}
	return 0, nil
}

func appendLines(path string, lines []string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, strings.Join(lines, "\n")); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
