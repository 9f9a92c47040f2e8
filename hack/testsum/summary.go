package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail, instead of Package
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string // the ImportPath whose build failure failed this package
}

// counts counts tests. A test with subtests is counted through them.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// test is one running test.
type test struct {
	output      strings.Builder
	hasSubtests bool
	// blamed says that this test or one below it has been counted as failed.
	blamed bool
}

// pkg is one package whose tests are running.
type pkg struct {
	counts
	output strings.Builder // what no test claimed: panics, TestMain, log lines
	tests  map[string]*test
	cached bool
}

type slowTest struct {
	name string
	took time.Duration
}

// summary is what is known while the events come in.
type summary struct {
	out      io.Writer
	slow     time.Duration
	each     bool
	packages map[string]*pkg
	builds   map[string]*strings.Builder // compiler output by ImportPath
	total    counts
	failures []string // a line for each failure
	slowest  []slowTest
}

func newSummary(out io.Writer, slow time.Duration, each bool) *summary {
	return &summary{
		out: out, slow: slow, each: each,
		packages: map[string]*pkg{},
		builds:   map[string]*strings.Builder{},
	}
}

// read reads the whole stream. A line that is not an event comes from another program, and is printed as it is.
func (s *summary) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				s.handle(e)
			} else {
				fmt.Fprintln(s.out, strings.TrimRight(line, "\n"))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) handle(e event) {
	switch e.Action {
	case "build-output":
		if s.builds[e.ImportPath] == nil {
			s.builds[e.ImportPath] = &strings.Builder{}
		}
		s.builds[e.ImportPath].WriteString(e.Output)
		return
	case "build-fail":
		return // the package that needed the build fails next and names it
	}
	p := s.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*test{}}
		s.packages[e.Package] = p
	}
	if e.Test == "" {
		s.handlePackage(p, e)
	} else {
		s.handleTest(p, e)
	}
}

func (s *summary) handlePackage(p *pkg, e event) {
	switch e.Action {
	case "output":
		p.cached = p.cached || strings.Contains(e.Output, "(cached)")
		p.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		s.endPackage(p, e)
		delete(s.packages, e.Package)
	}
}

func (s *summary) handleTest(p *pkg, e event) {
	t := p.tests[e.Test]
	if t == nil && e.Action == "output" {
		p.output.WriteString(e.Output) // written after the test's end
		return
	}
	if t == nil {
		t = &test{}
		p.tests[e.Test] = t
		if parent := p.parent(e.Test); parent != nil {
			parent.hasSubtests = true
		}
	}
	switch e.Action {
	case "output":
		if !isFraming(e.Output) {
			t.output.WriteString(e.Output)
		}
		s.showMeasured(e)
	case "pass":
		if !t.hasSubtests {
			p.passed++
		}
		if said := t.output.String(); strings.Contains(said, raceMark) {
			p.output.WriteString(said)
		}
	case "skip":
		if !t.hasSubtests {
			p.skipped++
		}
	case "fail":
		s.failTest(p, e.Package, e.Test, fmt.Sprintf("%.2f s", e.Elapsed))
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		s.endTest(p, e)
	}
}

// parent returns the test that the named one is a subtest of, or nil. A subtest's own name may contain slashes, so the
// nearest name that is known counts.
func (p *pkg) parent(name string) *test {
	for {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return nil
		}
		name = name[:i]
		if t := p.tests[name]; t != nil {
			return t
		}
	}
}

// failTest prints a failed test with all its output, and counts it, unless one of its subtests has been counted.
func (s *summary) failTest(p *pkg, pkgName, name, how string) {
	t := p.tests[name]
	output := t.output.String()
	if output != "" || !t.blamed {
		fmt.Fprintf(s.out, "--- FAIL  %s %s (%s)\n%s", pkgName, name, how, indent(output))
	}
	if !t.blamed {
		s.remember(pkgName+" "+name, output)
		p.failed++
	}
	for parent := p.parent(name); parent != nil; parent = p.parent(name) {
		parent.blamed = true
		name = name[:strings.LastIndexByte(name, '/')]
	}
}

// raceMark stands before a data race. One of a goroutine that outlived its test is found while some other test runs, which
// passes; then the package fails.
const raceMark = "WARNING: DATA RACE"

// measuredMark stands before a number that a test has measured. Such a number is shown even when the test passes.
const measuredMark = "measured: "

func (s *summary) showMeasured(e event) {
	if _, text, ok := strings.Cut(e.Output, measuredMark); ok && s.each {
		fmt.Fprintf(s.out, "      %s: %s\n", e.Test, strings.TrimRight(text, "\n"))
	}
}

func (s *summary) endTest(p *pkg, e event) {
	took := time.Duration(e.Elapsed * float64(time.Second))
	top := !strings.Contains(e.Test, "/")
	if s.each && top {
		fmt.Fprintf(s.out, "%-4s  %s %s (%.1f s)\n", e.Action, e.Package, e.Test, e.Elapsed)
	}
	if top && took >= s.slow {
		s.slowest = append(s.slowest, slowTest{e.Package + " " + e.Test, took})
	}
	if !top {
		p.tests[e.Test].output.Reset()
		delete(p.tests, e.Test)
		return
	}
	for name := range p.tests {
		if name == e.Test || strings.HasPrefix(name, e.Test+"/") {
			delete(p.tests, name)
		}
	}
}

func (s *summary) endPackage(p *pkg, e event) {
	if e.Action == "fail" {
		s.failPackage(p, e)
	}
	s.total.add(p.counts)
	if p.counts == (counts{}) {
		return // no tests in here
	}
	word, note := "ok", ""
	if p.failed > 0 {
		word = "FAIL"
	}
	if p.cached {
		note = " (cached)"
	}
	fmt.Fprintf(s.out, "%-4s  %s  %s  %.1f s%s\n", word, e.Package, p.counts, e.Elapsed, note)
}

// failPackage finds out why a package failed, so that every failure is counted: tests that never ended, a build that
// failed, or the package itself when no test has failed.
func (s *summary) failPackage(p *pkg, e event) {
	for _, name := range p.unfinished() {
		s.failTest(p, e.Package, name, "did not end")
	}
	if e.FailedBuild != "" {
		fmt.Fprintf(s.out, "--- FAIL  %s does not build\n", e.Package)
		if output := s.builds[e.FailedBuild]; output != nil {
			fmt.Fprint(s.out, indent(output.String()))
			s.remember(e.Package+" does not build", output.String())
			output.Reset() // printed once, although several packages may need this build
		}
		p.failed++
		return
	}
	if output := p.output.String(); p.failed == 0 || strings.Contains(output, "panic:") {
		fmt.Fprintf(s.out, "--- FAIL  %s\n%s", e.Package, indent(output))
	}
	if p.failed == 0 {
		s.remember(e.Package, p.output.String())
		p.failed++
	}
}

// maxFailureText bounds what the line of a failure says, in bytes.
const maxFailureText = 300

// remember keeps a failure as one line, with the begin of what it wrote. A reader of a long log finds all of them in one
// place.
func (s *summary) remember(what, output string) {
	said := strings.Join(strings.Fields(output), " ")
	if len(said) > maxFailureText {
		said = strings.ToValidUTF8(said[:maxFailureText], "") + "..."
	}
	s.failures = append(s.failures, strings.TrimRight(fmt.Sprintf("failed: %s: %s", what, said), ": "))
}

// unfinished returns the tests without an end, subtests before the tests they belong to.
func (p *pkg) unfinished() []string {
	var names []string
	for name := range p.tests {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// finish prints the slow tests and the counts of the whole run.
func (s *summary) finish() {
	// A stream that breaks off leaves packages open.
	var open []string
	for name := range s.packages {
		open = append(open, name)
	}
	slices.Sort(open)
	for _, name := range open {
		s.endPackage(s.packages[name], event{Action: "fail", Package: name})
	}
	slices.SortFunc(s.slowest, func(a, b slowTest) int { return int(b.took - a.took) })
	for _, t := range s.slowest {
		fmt.Fprintf(s.out, "slow  %s %.1f s\n", t.name, t.took.Seconds())
	}
	fmt.Fprintf(s.out, "tests: %s\n", s.total)
}

// isFraming recognises the lines with which the testing package frames a test's own output.
func isFraming(line string) bool {
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- FAIL", "--- SKIP"} {
		if strings.HasPrefix(strings.TrimLeft(line, " "), prefix) {
			return true
		}
	}
	return false
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
