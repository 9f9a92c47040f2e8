package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func addCRD(p *command.Program, root *cobra.Command) { root.AddCommand(NewCommand(p)) }

func TestCRDCheckAgainstAFile(t *testing.T) {
	other := "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n---\n"
	paths := clitest.Files(t, other+clitest.WidgetsAfter, clitest.WidgetsBefore, strings.ReplaceAll(clitest.WidgetsBefore, "widget", "gadget"), "kind: ConfigMap\napiVersion: v1\n",
		strings.Replace(clitest.WidgetsBefore, "extensions.k8s.io/v1", "extensions.k8s.io/v1beta1", 1), "{", "kind: List\napiVersion: v1\nitems: ["+asJSON(t, clitest.WidgetsAfter)+"]\n")
	after, before, gadgets := paths[0], paths[1], paths[2]
	for name, test := range map[string]struct {
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		"something breaks": {
			[]string{after, "--against", before},
			ExitBreaks,
			[]string{"widgets.example.com: 3 breaking, 0 risky, 1 other change\n", "Breaking   v1        .spec.mode      EnumRestricted   not allowed any more"},
			"",
		},
		"nothing changes":         {[]string{before, "--against", before}, 0, []string{"widgets.example.com: nothing changed\n"}, ""},
		"a new one":               {[]string{gadgets, "--against", before}, 0, []string{"gadgets.example.com: new\n"}, ""},
		"several files":           {[]string{gadgets, after, "--against", before}, ExitBreaks, []string{"gadgets.example.com: new\n\nwidgets.example.com: "}, ""},
		"a list":                  {[]string{paths[6], "--against", before}, ExitBreaks, []string{"widgets.example.com: 3 breaking"}, ""},
		"JSON":                    {[]string{after, "--against", before, "-o", "json"}, ExitBreaks, []string{`"breaks": true,`, `"code": "EnumRestricted"`}, ""},
		"no definition in a file": {[]string{paths[3], "--against", before}, 1, nil, "has no CustomResourceDefinition"},
		"an old version":          {[]string{paths[4], "--against", before}, 1, nil, "document 1: apiextensions.k8s.io/v1beta1 of CustomResourceDefinition is not served"},
		"no YAML":                 {[]string{paths[5], "--against", before}, 1, nil, "5.yaml: document 1: "},
		"twice":                   {[]string{after, paths[6], "--against", before}, 1, nil, `CustomResourceDefinition "widgets.example.com" is in `},
		"no such file":            {[]string{"/nowhere", "--against", before}, 1, nil, "open /nowhere"},
		"no file":                 {nil, 1, nil, "error: name a file with CustomResourceDefinitions, or - for the standard input\nSee 'kubectl slipway crd check --help'"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Offline(t, addCRD, append([]string{"crd", "check"}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, stderr %q; want %d, %q\n%s", code, stderr, test.code, test.stderr, stdout)
			}
			for _, part := range test.stdout {
				if !strings.Contains(stdout, part) {
					t.Errorf("want %q in\n%s", part, stdout)
				}
			}
		})
	}
}

func asJSON(t *testing.T, text string) string {
	t.Helper()
	crds, err := definitionsIn(strings.NewReader(text))
	if err != nil || len(crds) != 1 {
		t.Fatalf("%d definitions, %v", len(crds), err)
	}
	raw, err := json.Marshal(crds[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCRDCheckOfTheStandardInput(t *testing.T) {
	before := clitest.Files(t, clitest.WidgetsBefore)[0]
	code, stdout, stderr := clitest.OfflineReading(t, strings.NewReader(clitest.WidgetsAfter), addCRD, "crd", "check", "-", "--against", before)
	if code != ExitBreaks || !strings.Contains(stdout, "widgets.example.com: 3 breaking") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// cluster plays an API server with one definition and its objects, in pages.
type cluster struct {
	t       *testing.T
	pages   [][]string
	expired bool
	refused bool
	lists   []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com":
		fmt.Fprint(w, asJSON(c.t, clitest.WidgetsBefore))
	case "/apis/example.com/v1/widgets", "/apis/example.com/v1/namespaces/shop/widgets":
		c.list(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
		c.answer(w, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}
}

func (c *cluster) answer(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if err := json.NewEncoder(w).Encode(status); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) list(w http.ResponseWriter, r *http.Request) {
	c.lists = append(c.lists, r.URL.RequestURI())
	page := 0
	if next := r.URL.Query().Get("continue"); next != "" {
		if _, err := fmt.Sscanf(next, "page-%d", &page); err != nil {
			c.t.Error(err)
		}
	}
	switch {
	case c.refused:
		w.WriteHeader(http.StatusForbidden)
		c.answer(w, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "you may not"})
		return
	case c.expired && page == 1 && !strings.HasSuffix(r.URL.Query().Get("continue"), "again"):
		w.WriteHeader(http.StatusGone)
		c.answer(w, metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, ListMeta: metav1.ListMeta{Continue: "page-1-again"},
		})
		return
	}
	next := ""
	if page+1 < len(c.pages) {
		next = fmt.Sprintf("page-%d", page+1)
	}
	fmt.Fprintf(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(c.pages[page], ","))
}

func widgetJSON(name, spec string) string {
	quoted, _ := json.Marshal(name)
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":%s,"namespace":"shop"},"spec":%s}`, quoted, spec)
}

func TestCRDCheckAgainstACluster(t *testing.T) {
	after := clitest.Files(t, clitest.WidgetsAfter)[0]
	pages := [][]string{
		{widgetJSON("good", `{"mode":"fast"}`), widgetJSON("slow", `{"mode":"slow","old":"x"}`)},
		{widgetJSON("thirteen", `{"size":13}`), widgetJSON("odd\x1b[2J", `{"mode":"\u001b]0;title"}`)},
	}
	run := func(c *cluster, args ...string) (int, string, string) {
		server := httptest.NewServer(c)
		defer server.Close()
		return clitest.Offline(t, addCRD, append([]string{"crd", "check", after, "--kubeconfig", "/dev/null", "--server", server.URL}, args...)...)
	}

	c := &cluster{t: t, pages: pages, expired: true}
	code, stdout, stderr := run(c)
	if code != ExitBreaks || stderr != "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	clitest.Golden(t, "crd/cluster.txt", func(out *bytes.Buffer) error { _, err := out.WriteString(stdout); return err })
	want := []string{
		"/apis/example.com/v1/widgets?limit=500", "/apis/example.com/v1/widgets?continue=page-1&limit=500",
		"/apis/example.com/v1/widgets?continue=page-1-again&limit=500",
	}
	if diff := cmp.Diff(want, c.lists); diff != "" {
		t.Errorf("the lists that were asked for (-want +got):\n%s", diff)
	}

	c = &cluster{t: t, pages: pages}
	code, stdout, _ = run(c, "-o", "yaml", "-n", "shop")
	if code != ExitBreaks || len(c.lists) != 2 || !strings.HasPrefix(c.lists[0], "/apis/example.com/v1/namespaces/shop/widgets") {
		t.Errorf("exit code %d, lists %v", code, c.lists)
	}
	clitest.Golden(t, "crd/cluster.yaml", func(out *bytes.Buffer) error { _, err := out.WriteString(stdout); return err })

	c = &cluster{t: t, pages: pages}
	if code, stdout, _ = run(c, "--no-instances"); code != ExitBreaks || len(c.lists) != 0 || strings.Contains(stdout, "objects checked") {
		t.Errorf("exit code %d, lists %v\n%s", code, c.lists, stdout)
	}

	c = &cluster{t: t, refused: true}
	if code, stdout, _ = run(c); code != ExitBreaks || !strings.Contains(stdout, "not all were checked: list widgets.example.com: you may not") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// What could not be looked at is an error when nothing else is wrong.
func TestCRDOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		report crdReport
		want   int
	}{
		"nothing":               {crdReport{}, 0},
		"only risks":            {crdReport{Findings: []crdcheck.Finding{{Severity: crdcheck.Risky}}}, 0},
		"a breaking change":     {crdReport{Findings: []crdcheck.Finding{{Severity: crdcheck.Breaking}}}, 2},
		"an object breaks":      {crdReport{Objects: &crdObjects{Breaks: 1}}, 2},
		"an object in places":   {crdReport{Objects: &crdObjects{BreaksOnEdit: 1}}, 2},
		"an object loses":       {crdReport{Objects: &crdObjects{Pruned: 1}}, 2},
		"not looked at":         {crdReport{Objects: &crdObjects{NotChecked: "no"}}, 1},
		"not understood":        {crdReport{Objects: &crdObjects{Unknown: 1}}, 1},
		"broken and not looked": {crdReport{Objects: &crdObjects{Breaks: 1, NotChecked: "no"}}, 2},
	} {
		test.report.Breaks = test.report.breaks()
		err := crdOutcome([]crdReport{{}, test.report})
		got := 0
		if exit := (&command.ExitError{}); errors.As(err, &exit) {
			got = exit.Code
		} else if err != nil {
			got = 1
		}
		if got != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPassesOfVersions(t *testing.T) {
	version := func(name string, served, storage bool, length int64) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: served, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"a": {Type: "string", MaxLength: &length},
				}},
			},
		}
	}
	definition := func(webhook bool, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Versions = versions
		if webhook {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
		}
		return crd
	}
	before := definition(false, version("v1", true, false, 1), version("v2", true, true, 1), version("v3", false, false, 1))
	for name, test := range map[string]struct {
		before, after *apiextensionsv1.CustomResourceDefinition
		want          string
	}{
		"alike":               {before, before, "v2: v1"},
		"different":           {before, definition(false, version("v1", true, false, 1), version("v2", true, true, 2)), "v2: v1 v2"},
		"with a webhook":      {before, definition(true, version("v1", true, false, 1), version("v2", true, true, 1)), "v1: v1; v2: v2"},
		"none stays":          {before, definition(false, version("v4", true, true, 1)), "v2: v4"},
		"none stays, webhook": {before, definition(true, version("v4", true, true, 1)), "no version is served before and after the change, and a webhook converts"},
		"none was served":     {definition(false, version("v1", false, true, 1)), before, "the cluster serves no version of it"},
		"none is served":      {before, definition(false, version("v1", false, true, 1)), "the changed definition serves no version"},
	} {
		passes, err := passesOf(test.before, test.after)
		var texts []string
		for _, pass := range passes {
			text := pass.version + ":"
			for _, checker := range pass.checkers {
				text += " " + checker.version
			}
			texts = append(texts, text)
		}
		got := strings.Join(texts, "; ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// Whatever a file and an object hold, a table has only what can be printed, and JSON and YAML can be read again.
func FuzzCRDCheck(f *testing.F) {
	f.Add(clitest.WidgetsBefore, clitest.WidgetsAfter, `{"mode":"slow","size":13}`)
	f.Add(clitest.WidgetsBefore, strings.Replace(clitest.WidgetsAfter, "enum: [fast]", `pattern: "\e[2J"`, 1), `{"mode":"\u001b[2J"}`)
	f.Add(clitest.WidgetsBefore, strings.Replace(clitest.WidgetsAfter, "enum: [fast]", `pattern: "\x7f\u0085\u009b"`, 1), `{"mode":"\u007f\u0085\u009b"}`)
	f.Add("---\n---\nkind: List\nitems: [{}]\n", clitest.WidgetsAfter+"---\n"+clitest.WidgetsBefore, "[]")
	f.Fuzz(func(t *testing.T, first, second, spec string) {
		if len(first)+len(second)+len(spec) > 50_000 {
			return
		}
		before, err := definitionsIn(strings.NewReader(first))
		if err != nil || len(before) == 0 {
			return
		}
		after, err := definitionsIn(strings.NewReader(second))
		if err != nil || len(after) == 0 {
			return
		}
		report := crdReport{Name: after[0].Name, Objects: &crdObjects{}}
		report.Findings = append(crdcheck.Refused(t.Context(), before[0], after[0]), crdcheck.Compare(before[0], after[0])...)
		object := &unstructured.Unstructured{}
		if passes, err := passesOf(before[0], after[0]); err == nil && object.UnmarshalJSON([]byte(widgetJSON(spec, spec))) == nil {
			report.Objects.check(t.Context(), object, passes[0].checkers, true)
		}
		out := &bytes.Buffer{}
		o := &crdCheckOptions{Program: &command.Program{Options: command.Options{Streams: genericiooptions.IOStreams{Out: out}}}, output: command.FormatTable}
		if err := o.show([]crdReport{report}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("printed: %q", out)
		}
		for _, format := range []command.Format{command.FormatJSON, command.FormatYAML} {
			out.Reset()
			o.output = format
			if err := o.show([]crdReport{report}); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
				t.Errorf("printed as %s: %q", format, out)
			}
		}
	})
}

// TestOneCheckedObjectIsNoPlural looks at a line that counts what may be one.
func TestOneCheckedObjectIsNoPlural(t *testing.T) {
	if got := crdObjectsLine(&crdObjects{Checked: 1, Pruned: 1}); got != "1 object checked: 1 loses fields" {
		t.Error(got)
	}
}
