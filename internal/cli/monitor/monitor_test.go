package monitor

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

// monitorAnswers plays the monitor. It notes what it is asked.
type monitorAnswers struct {
	asked []*http.Request
	code  int
	body  any
}

func (m *monitorAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked = append(m.asked, r)
	w.WriteHeader(m.code)
	_ = json.NewEncoder(w).Encode(m.body)
}

// addMonitor adds the commands that ask the monitor.
func addMonitor(p *command.Program, root *cobra.Command) {
	root.AddCommand(NewChangesCommand(p), NewHealthCommand(p), NewCoverageCommand(p), NewUICommand(p))
}

// askMonitor runs a command whose kubeconfig has a user. The cluster is at an https address: for others a kubeconfig gives no token.
func askMonitor(t *testing.T, answers http.Handler, user string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	monitor := httptest.NewServer(answers)
	defer monitor.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":` + user + `}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return clitest.Offline(t, addMonitor, append(args, "--kubeconfig", path, "--monitor-url", monitor.URL)...)
}

func someChanges() *api.Changes {
	kind := change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
	at := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	return &api.Changes{
		View: api.View{Lag: 12, Uncovered: []api.Uncovered{{Kind: "gears.example.com", State: "Refused", Reason: "it may not be read"}}, UncoveredCount: 1},
		Changes: []api.Change{
			{Record: change.Record{
				Kind: kind, Namespace: "shop", Name: "b\x1b[31m", Type: change.Updated, Time: at, Actor: change.Actor{Name: "kubectl", Confidence: change.Likely},
				Fields: []change.Field{{Path: ".spec.size", Op: change.Changed, Old: json.RawMessage("1"), New: json.RawMessage("2")}},
			}},
			{Record: change.Record{Kind: kind, Type: change.Gap, Time: at, Since: at.Add(-time.Hour), Reason: "the API server was away"}},
		},
	}
}

func TestChangesOfTheMonitorAreShown(t *testing.T) {
	answers := &monitorAnswers{code: 200, body: someChanges()}
	code, stdout, stderr := askMonitor(t, answers, `{"token":"secret-token"}`, "changes", "--since", "2d", "--actor", "kubectl", "-n", "shop", "--diff")
	if code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	for _, part := range []string{"Updated widget/b", " in shop by kubectl", "~ .spec.size: 1 -> 2", "Gap widgets.example.com", "note: the API server was away"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("want %q in\n%s", part, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("a name moves the terminal: %q", stdout)
	}
	if strings.Index(stdout, "Gap") > strings.Index(stdout, "Updated") {
		t.Error("the newest is not the last")
	}
	if !strings.Contains(stderr, "up to 12s late") || !strings.Contains(stderr, "gears.example.com is Refused") {
		t.Errorf("%s", stderr)
	}
	r := answers.asked[0]
	if r.URL.Path != "/api/v1/changes" || r.URL.RawQuery != "actor=kubectl&fields=true&limit=200&namespace=shop&since=48h" || r.Header.Get("Authorization") != "Bearer secret-token" {
		t.Errorf("%s %s", r.URL, r.Header)
	}
	_, stdout, _ = askMonitor(t, answers, `{"token":"secret-token"}`, "changes", "-o", "json")
	read := api.Changes{}
	if err := json.Unmarshal([]byte(stdout), &read); err != nil || len(read.Changes) != 2 {
		t.Errorf("%v %s", err, stdout)
	}
}

func TestHealthAndCoverageOfTheMonitorAreShown(t *testing.T) {
	answers := &monitorAnswers{code: 200, body: &api.HealthSummary{Counts: map[string]int64{"Failed": 1, "Healthy": 7}, Objects: []api.ObjectHealth{
		{Kind: "widgets.example.com", KindName: "Widget", Namespace: "shop", Name: "a", Health: api.Health{State: "Failed", Reason: "Broken", Message: "no disk"}},
	}}}
	_, stdout, _ := askMonitor(t, answers, `{"token":"t"}`, "health")
	for _, part := range []string{"1 Failed, 7 Healthy", "widget/a", "no disk"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("want %q in\n%s", part, stdout)
		}
	}
	answers.body = &api.Coverage{Complete: true, Kinds: []api.Covered{{Name: "a.example.com", State: "Live"}, {Name: "b.example.com", State: "Refused", Reason: "403"}}}
	_, stdout, _ = askMonitor(t, answers, `{"token":"t"}`, "coverage")
	if strings.Index(stdout, "b.example.com") > strings.Index(stdout, "a.example.com") || !strings.Contains(stdout, "403") {
		t.Errorf("%s", stdout)
	}
}

// TestNothingHasAReason: an answer without anything says whose rights it is about, and where.
func TestNothingHasAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		body any
		args []string
		want string
	}{
		"health everywhere":     {&api.HealthSummary{}, []string{"health"}, "nothing that you may list in all namespaces; rights in one namespace count with -n NAMESPACE"},
		"health in a namespace": {&api.HealthSummary{}, []string{"health", "-n", "demo"}, `nothing that you may list in namespace "demo"`},
		"changes everywhere":    {&api.Changes{}, []string{"changes"}, "No changes of what you may list in all namespaces; rights"},
		"changes in one":        {&api.Changes{}, []string{"changes", "-n", "demo"}, `No changes of what you may list in namespace "demo".`},
		"coverage":              {&api.Coverage{Complete: true}, []string{"coverage"}, "No kind that you may list in all namespaces; rights"},
	} {
		code, stdout, stderr := askMonitor(t, &monitorAnswers{code: 200, body: tc.body}, `{"token":"t"}`, tc.args...)
		if code != 0 || !strings.Contains(stdout+stderr, tc.want) {
			t.Errorf("%s: %d, want %q in\n%s%s", name, code, tc.want, stdout, stderr)
		}
	}
	if got := (&monitorFlags{account: "demo/viewer"}).mayList(""); !strings.HasPrefix(got, "the ServiceAccount demo/viewer may list in all namespaces; ") {
		t.Error(got)
	}
}

// TestOneKindIsNoPlural looks at a line that counts what may be one.
func TestOneKindIsNoPlural(t *testing.T) {
	out := &bytes.Buffer{}
	p := &command.Program{Options: command.Options{Streams: genericiooptions.IOStreams{Out: out, ErrOut: out}}}
	if err := printView(p, &api.View{UncoveredCount: 1}, false, nil); err != nil || !strings.Contains(out.String(), "Not covered: 1 more kind\n") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhyTheMonitorDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		user   string
		code   int
		body   any
		args   []string
		stderr string
	}{
		"no token":            {`{"username":"u","password":"p"}`, 200, nil, []string{"coverage"}, "--monitor-account NAMESPACE/NAME"},
		"a token that is old": {`{"token":"t"}`, 401, &failure.Failure{Reason: failure.Unauthenticated, Message: "m"}, []string{"coverage"}, "does not accept your token"},
		"no right":            {`{"token":"t"}`, 404, &failure.Failure{Reason: failure.NotFound, Message: "there is no such kind"}, []string{"changes"}, "try -n NAMESPACE"},
		"something else":      {`{"token":"t"}`, 200, "hello", []string{"health"}, "not the monitor"},
		"another page":        {`{"token":"t"}`, 302, nil, []string{"health"}, "not the monitor"},
		"as another user":     {`{"token":"t"}`, 200, nil, []string{"health", "--as", "admin"}, "--monitor-account"},
		"a wrong time":        {`{"token":"t"}`, 200, nil, []string{"changes", "--since", "yesterday"}, "--since is"},
		"a wrong account":     {`{"token":"t"}`, 200, nil, []string{"health", "--monitor-account", "x"}, "NAMESPACE/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := &monitorAnswers{code: tc.code, body: tc.body}
			code, _, stderr := askMonitor(t, answers, tc.user, tc.args...)
			if code != 1 || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("%d %s", code, stderr)
			}
		})
	}
	answers := &monitorAnswers{code: 200}
	if _, _, _ = askMonitor(t, answers, `{"username":"u","password":"p"}`, "coverage"); len(answers.asked) > 0 {
		t.Error("a password was sent to the monitor")
	}
}

func TestATokenIsSentOnlyWhereItIsSafe(t *testing.T) {
	for address, want := range map[string]bool{
		"https://monitor.example.com": true, "https://monitor.example.com/base/": true, "http://127.0.0.1:8443": true, "http://[::1]:1": true,
		"http://monitor.example.com": false, "http://localhost.example.com": false, "http://10.0.0.1": false, "ftp://127.0.0.1": false,
		"https://user:x@monitor.example.com": false, "monitor.example.com": false, "https://monitor.example.com?x=y": false, "": false,
	} {
		if _, err := monitorAddress(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestTheMonitorIsNotInstalled asks a cluster without its pod, and one that does not let the user look.
func TestTheMonitorIsNotInstalled(t *testing.T) {
	for code, want := range map[int]string{200: "is not installed in namespace \"slipway-system\"", 403: "you may not list pods in namespace \"slipway-system\""} {
		cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			body := `{"kind":"PodList","apiVersion":"v1","items":[]}`
			if code == 403 {
				body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			}
			_, _ = w.Write([]byte(body))
		}))
		defer cluster.Close()
		exit, _, stderr := clitest.Offline(t, addMonitor, "coverage", "--kubeconfig", "/dev/null", "--server", cluster.URL, "--token", "t")
		if exit != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%d: %s", exit, stderr)
		}
	}
}
