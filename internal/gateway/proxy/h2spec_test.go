//go:build h2spec

package proxy

import (
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// report is h2spec's result in JUnit format.
type report struct {
	Suites []struct {
		Cases []struct {
			Section  string    `xml:"package,attr"`
			Name     string    `xml:"classname,attr"`
			Failures []finding `xml:"failure"`
			Errors   []finding `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type finding struct {
	Text string `xml:",innerxml"`
}

// h2specCases is the number of h2spec's cases. It makes sure that none is left out.
const h2specCases = 145

// These cases fail. docs/spec/apigateway.md ("HTTP/2 on the wire") says what a client sees
// instead. The list is exact: remove a case that passes now, here and in that page.
var (
	ofTheServer = []string{
		"http2/6.5.3: Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE",
		"http2/8.1.2.2: Sends a HEADERS frame that contains the TE header field with any value other than \"trailers\"",
		"http2/8.1.2.2: Sends a HEADERS frame that contains the connection-specific header field",
	}
	ofSharedPorts = append([]string{"http2/3.5: Sends invalid connection preface"}, ofTheServer...)
)

func TestHTTP2AsTheSpecificationSays(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "a response of some length")
	})
	g := start(t, Options{}, toApp, backend)
	for name, test := range map[string]struct {
		address  string
		flags    []string
		expected []string // cases that must fail
	}{
		"h2c": {g.address, nil, ofSharedPorts},
		"TLS": {g.startTLS(t), []string{"--tls", "--insecure"}, ofTheServer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := runH2spec(t, test.address, test.flags...)
			var failed []string
			count := 0
			for _, suite := range all.Suites {
				for _, c := range suite.Cases {
					count++
					if findings := slices.Concat(c.Failures, c.Errors); len(findings) > 0 {
						failed = append(failed, c.Section+": "+c.Name)
						t.Logf("%s: %s: %s", c.Section, c.Name, findings[0].Text)
					}
				}
			}
			slices.Sort(failed)
			if diff := cmp.Diff(test.expected, failed); diff != "" {
				t.Errorf("cases that fail: -want +got:\n%s", diff)
			}
			if count != h2specCases {
				t.Errorf("h2spec tried %d cases, want %d", count, h2specCases)
			}
			t.Logf("measured: h2spec over %s: %d of %d pass", name, count-len(failed), count)
		})
	}
}

// runH2spec runs the program that an environment variable names.
func runH2spec(t *testing.T, address string, flags ...string) report {
	t.Helper()
	program := os.Getenv("H2SPEC")
	if program == "" {
		t.Fatal("H2SPEC does not name the program: use make test-h2spec")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.xml")
	arguments := append([]string{"--host", host, "--port", port, "--timeout", "2", "--junit-report", path}, flags...)
	output, runErr := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput() // fails when a case fails
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no report: %v, %v:\n%s", err, runErr, strings.TrimSpace(string(output)))
	}
	var all report
	if err := xml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
