package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The streams below are what `go test -json` prints, without the fields that testsum does not read.
var runCases = []struct {
	name   string
	args   []string
	stream string
	code   int
	counts string
	failed string   // the line of the failure, before the counts
	want   []string // in the output
	absent []string // not in the output
}{
	{
		name: "a test with subtests counts through them",
		stream: `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"run","Package":"p","Test":"TestA/two/with_a_slash"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":0}
{"Action":"skip","Package":"p","Test":"TestA/two/with_a_slash","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":7}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Output":"ok  \tp\t(cached)\n"}
{"Action":"pass","Package":"p","Elapsed":7.1}`,
		counts: "2 passed, 0 failed, 1 skipped",
		want:   []string{"ok    p  2 passed, 0 failed, 1 skipped  7.1 s (cached)", "slow  p TestA 7.0 s"},
		absent: []string{"chatter", "=== RUN"},
	},
	{
		name: "a failed subtest is one failure, told in full",
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: the parent's word\n"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"run","Package":"p","Test":"TestA/one/deep"}
{"Action":"output","Package":"p","Test":"TestA/one/deep","Output":"    a_test.go:3: boo\n"}
{"Action":"output","Package":"p","Test":"TestA/one/deep","Output":"        second line\n"}
{"Action":"output","Package":"p","Test":"TestA/one/deep","Output":"        --- FAIL: TestA/one/deep (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA/one/deep","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":0}
{"Action":"run","Package":"p","Test":"TestA/two"}
{"Action":"pass","Package":"p","Test":"TestA/two","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.003s\n"}
{"Action":"fail","Package":"p","Elapsed":0.003}`,
		code:   1,
		counts: "1 passed, 1 failed, 0 skipped",
		failed: "failed: p TestA/one/deep: a_test.go:3: boo second line\n",
		want:   []string{"--- FAIL  p TestA/one/deep", "boo\n            second line", "the parent's word", "FAIL  p"},
		absent: []string{"--- FAIL: TestA", "--- FAIL  p TestA/one (0"},
	},
	{
		name: "a parent that fails by itself counts",
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
		code:   1,
		counts: "1 passed, 1 failed, 0 skipped",
		failed: "failed: p TestA\n",
	},
	{
		name: "a package that does not build is one failure",
		stream: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a_test.go:3:28: declared and not used: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}`,
		code:   1,
		counts: "0 passed, 1 failed, 0 skipped",
		failed: "failed: p does not build: p/a_test.go:3:28: declared and not used: x\n",
		want:   []string{"p does not build", "declared and not used: x"},
	},
	{
		name: "a test that never ended is a failure",
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"panic: test timed out after 3s\n"}
{"Action":"fail","Package":"p","Elapsed":3}`,
		code:   1,
		counts: "0 passed, 1 failed, 0 skipped",
		failed: "failed: p TestA/x: panic: test timed out after 3s\n",
		want:   []string{"TestA/x (did not end)", "timed out after 3s"},
	},
	{
		name: "a package that fails without a failed test is a failure",
		stream: `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"no environment\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
		code:   1,
		counts: "0 passed, 1 failed, 0 skipped",
		failed: "failed: p: no environment\n",
		want:   []string{"no environment"},
	},
	{
		name: "a stream that breaks off is a failure",
		stream: `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}`,
		code:   1,
		counts: "0 passed, 1 failed, 0 skipped",
		failed: "failed: p TestA\n",
		want:   []string{"TestA (did not end)"},
	},
	{
		name: "words after a test's end belong to the package",
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestA","Output":"too late\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
		code:   1,
		counts: "1 passed, 1 failed, 0 skipped",
		failed: "failed: p: too late\n",
		want:   []string{"too late"},
	},
	{
		name: "a data race that another test's goroutine left is told",
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"Read at 0x00c00003db53\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0.1}`,
		code:   1,
		counts: "1 passed, 1 failed, 0 skipped",
		failed: "failed: p: WARNING: DATA RACE Read at 0x00c00003db53\n",
		want:   []string{"Read at 0x00c00003db53"},
	},
	{
		name: "each prints a line per top-level test, and what was measured",
		args: []string{"-each"},
		stream: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: measured: 12 ms\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:4: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.2}
{"Action":"pass","Package":"p","Elapsed":0.3}`,
		counts: "1 passed, 0 failed, 0 skipped",
		want:   []string{"pass  p TestA (0.2 s)", "TestA: 12 ms"},
		absent: []string{"chatter"},
	},
	{
		name: "a run without a test fails",
		stream: `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}
{"Action":"skip","Package":"p","Elapsed":0}`,
		code:   1,
		counts: "0 passed, 0 failed, 0 skipped",
	},
	{
		name:   "no stream at all fails, and other words pass through",
		stream: "flag provided but not defined: -badflag",
		code:   1,
		counts: "0 passed, 0 failed, 0 skipped",
		want:   []string{"-badflag"},
	},
}

func TestRun(t *testing.T) {
	for _, tc := range runCases {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "counts")
			if err := os.WriteFile(file, []byte("earlier\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			code, _ := run(append(tc.args, "-counts", file), strings.NewReader(tc.stream), &out)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			counts, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(counts), "earlier\n"+tc.failed+tc.counts+"\n"; got != want {
				t.Errorf("counts %q, want %q", got, want)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q", want)
				}
			}
			for _, absent := range tc.absent {
				if strings.Contains(out.String(), absent) {
					t.Errorf("the output has %q", absent)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", out.String())
			}
		})
	}
}
