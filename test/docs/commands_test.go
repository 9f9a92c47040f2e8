package docs

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// These are the commands of kubectl that are looked at. Those of writers change the object that they name.
var (
	writers = []string{"delete", "patch", "edit", "annotate", "label", "scale", "autoscale", "replace"}
	readers = []string{"get", "describe", "wait", "explain"}
)

// shared are kinds of Slipway of whose names other projects have kinds, too: CloudNativePG, Longhorn, K8up, Velero, kgateway.
var shared = []string{"Backup", "Restore", "GatewayParameters"}

// kindWords are the names of the kinds of Slipway without their group. The value tells that it may be taken for another project's.
func kindWords(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(root + "/config/crd/slipway.dev_*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	words := map[string]bool{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			t.Fatal(err)
		}
		names := crd.Spec.Names
		words[names.Plural] = slices.Contains(shared, names.Kind)
		words[names.Singular] = words[names.Plural]
		for i, short := range names.ShortNames {
			words[short] = i > 0
		}
	}
	return words
}

var (
	// A command begins in a line, after a prompt, in a string, in code of a page, or in a shell's parentheses.
	commands = regexp.MustCompile("(?:^|[\\s\"'`(])(?:kubectl|\"?\\$\\{?KUBECTL\\}?\"?) +([^`|;&)]*)")
	flags    = regexp.MustCompile(`^-`)
)

// unclear returns the words of a text that name a kind of Slipway in a command of kubectl, and may mean another kind.
func unclear(text string, words map[string]bool) []string {
	var found []string
	for _, match := range commands.FindAllStringSubmatch(text, -1) {
		args := slices.DeleteFunc(strings.Fields(match[1]), func(arg string) bool { return arg == `\` })
		// Flags may come before the command. Their values do not matter: no command is called like one.
		at := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(writers, arg) || slices.Contains(readers, arg) })
		if at < 0 || at > 0 && !flags.MatchString(args[0]) {
			continue // It is no command, or a plugin.
		}
		for _, word := range kindsIn(args[at+1:]) {
			both, ours := words[strings.ToLower(word)]
			if ours && (both || slices.Contains(writers, args[at])) {
				found = append(found, args[at]+" "+word)
			}
		}
	}
	return found
}

// kindsIn returns the kinds in arguments such as KIND,KIND NAME, KIND/NAME KIND/NAME and KIND.FIELD.
func kindsIn(args []string) []string {
	var kinds []string
	for i := 0; i < len(args); i++ {
		arg := strings.Trim(args[i], `"'.,`)
		if flags.MatchString(arg) {
			// A flag of one letter has a value.
			if len(arg) == 2 && !slices.Contains([]string{"-A", "-w"}, arg) {
				i++
			}
			continue
		}
		kind, _, isObject := strings.Cut(arg, "/")
		if isObject || len(kinds) == 0 {
			for _, one := range strings.Split(kind, ",") {
				// explain takes KIND.FIELD, and a group is no field.
				if name, field, found := strings.Cut(one, "."); found && (field == "spec" || field == "status" || strings.HasPrefix(field, "spec.") || strings.HasPrefix(field, "status.")) {
					one = name
				}
				kinds = append(kinds, one)
			}
		}
		if !isObject && len(kinds) > 0 && !strings.Contains(kind, ",") {
			kinds = append(kinds, "") // names follow
		}
	}
	return kinds
}

func TestUnclear(t *testing.T) {
	words := map[string]bool{"webapp": false, "webapps": false, "backup": true, "backups": true, "app": true, "slwapp": false}
	for text, want := range map[string][]string{
		"kubectl delete restores,backups --all":                                     {"delete backups"},
		"$ kubectl delete webapp shop cart":                                         {"delete webapp"},
		"`kubectl patch webapp/shop`":                                               {"patch webapp"},
		`fmt.Sprintf("say kubectl annotate webapps %s x=y", name)`:                  {"annotate webapps"},
		`"$KUBECTL" delete -n shop backup/a pvc/b`:                                  {"delete backup"},
		`x=$("$KUBECTL" get webapp demo -n demo)`:                                   nil,
		"kubectl get backup,restores":                                               {"get backup"},
		"kubectl -n shop get app":                                                   {"get app"},
		"kubectl get slwapp":                                                        nil,
		"kubectl wait --for=condition=Ready app/shop":                               {"wait app"},
		"kubectl explain backup.spec.source":                                        {"explain backup"},
		"kubectl delete backups.slipway.dev,webapps.slipway.dev --all":              nil,
		"kubectl delete backups.slipway.dev shop":                                   nil,
		"kubectl delete pvc backup webapp":                                          nil,
		"kubectl delete crd webapps.slipway.dev && kubectl delete backup shop":      {"delete backup"},
		"kubectl slipway backup now shop":                                           nil,
		"kubectl label namespace shop app":                                          nil,
		"kubectl delete deployment/x webapp/y":                                      {"delete webapp"},
		"kubectl delete \\\n  webapps --all":                                        {"delete webapps"},
		"what kubectl gets, and the webapp that kubectl may delete webapp/x is one": nil,
	} {
		if got := unclear(text, words); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestCommandsNameKindsInFull: no page, chart, script or message tells a user to change what may be another project's.
func TestCommandsNameKindsInFull(t *testing.T) {
	words := kindWords(t)
	for path, raw := range texts(t) {
		text := strings.ReplaceAll(string(raw), "\\\n", " ")
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			for _, found := range unclear(lines.Text(), words) {
				t.Errorf("%s: kubectl %s: say it with .slipway.dev\n%s", path, found, strings.TrimSpace(lines.Text()))
			}
		}
		if lines.Err() != nil {
			t.Errorf("%s: %v", path, lines.Err())
		}
	}
}

// texts are the files that users read, or whose messages they read.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	found := filesOf(t, func(name string) bool {
		written := slices.Contains([]string{".md", ".go", ".sh", ".yaml", ".txt", ".tpl", ".tmpl", ".js", ".ts", ".tsx"}, filepath.Ext(name))
		return written && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated")
	})
	maps.DeleteFunc(found, func(file string, raw []byte) bool {
		return strings.HasPrefix(file, "test/") || !bytes.Contains(bytes.ToLower(raw), []byte("kubectl"))
	})
	return found
}
