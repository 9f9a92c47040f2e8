//go:build disttest

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/release/inspect"
)

// registry goes before the names of the images in install.yaml and in the chart.
const registry = "registry.example.com/team"

// made is the release that all tests look at: two builds of the last commit.
var made struct {
	version       string
	created       time.Time
	first, second string // folders with the files of each build
	clones        []string
	publicKey     string
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "dist-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	if err := buildTwice(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// buildTwice builds the last commit in two clones, whose folders, time zones, languages,
// masks for modes and ignored files differ. With FRESH=1 the second build compiles
// everything again.
func buildTwice(folder string) error {
	key := filepath.Join(folder, "release.key")
	made.publicKey = filepath.Join(folder, "release.pub")
	steps := [][]string{
		{"openssl", "genpkey", "-algorithm", "ed25519", "-out", key},
		{"openssl", "pkey", "-in", key, "-pubout", "-out", made.publicKey},
		{"chmod", "600", key},
	}
	second := []string{"TZ=Pacific/Auckland", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "GOAMD64=v3", "GOFLAGS=-trimpath=false"}
	if os.Getenv("FRESH") != "" {
		second = append(second, "GOCACHE="+filepath.Join(folder, "cache"))
	}
	builds := []struct {
		clone, mask string
		ignored     []string // files that git ignores, which lie in the clone
		environment []string
	}{
		{filepath.Join(folder, "a"), "022", nil, nil},
		{filepath.Join(folder, "another", "place", "slipway"), "077", []string{"charts/slipway/rest.out", "charts/slipway/templates/rest.test"}, second},
	}
	for _, step := range steps {
		if err := must(nil, step...); err != nil {
			return err
		}
	}
	for _, build := range builds {
		if err := must(nil, "git", "clone", "-q", "--no-local", "../..", build.clone); err != nil {
			return err
		}
		for _, name := range build.ignored {
			if err := os.WriteFile(filepath.Join(build.clone, name), []byte("not committed\n"), 0o600); err != nil {
				return err
			}
		}
		environment := slices.Concat(build.environment, []string{"SIGNING_KEY=" + key, "REGISTRY=" + registry})
		if err := must(environment, "bash", "-c", `umask "$1" && make -C "$2" dist`, "bash", build.mask, build.clone); err != nil {
			return err
		}
		made.clones = append(made.clones, build.clone)
	}
	return readMade()
}

func readMade() error {
	version, err := os.ReadFile(filepath.Join(made.clones[0], "VERSION"))
	if err != nil {
		return err
	}
	seconds, err := exec.Command("git", "-C", made.clones[0], "log", "-1", "--format=%ct").Output()
	if err != nil {
		return err
	}
	var epoch int64
	if _, err := fmt.Sscan(string(seconds), &epoch); err != nil {
		return err
	}
	made.version, made.created = strings.TrimSpace(string(version)), time.Unix(epoch, 0)
	made.first = filepath.Join(made.clones[0], "dist", made.version)
	made.second = filepath.Join(made.clones[1], "dist", made.version)
	return nil
}

// must runs a program that has to succeed, and shows what it says when it does not.
func must(environment []string, words ...string) error {
	run := exec.Command(words[0], words[1:]...)
	run.Env = append(os.Environ(), environment...)
	output, err := run.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, output)
	}
	return nil
}

// output runs a program and returns what it prints.
func output(t *testing.T, words ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), words[0], words[1:]...)
	var said bytes.Buffer
	run.Stderr = &said
	text, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, said.String())
	}
	return string(text)
}

// sums are the checksums of the files of a folder.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		sum := sha256.Sum256(read(t, filepath.Join(folder, entry.Name())))
		all[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Two builds of one commit in two folders are equal, byte for byte.
func TestTwoBuildsAreEqual(t *testing.T) {
	first, second := sums(t, made.first), sums(t, made.second)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("checksums of the builds differ (-first +second):\n%s", diff)
	}
	if len(first) < 20 {
		t.Errorf("only %d files were compared", len(first))
	}
}

func TestFiles(t *testing.T) {
	var want []string
	add := func(format string, values ...string) {
		for _, value := range values {
			want = append(want, strings.NewReplacer("VERSION", made.version, "BARE", strings.TrimPrefix(made.version, "v")).Replace(strings.ReplaceAll(format, "*", value)))
		}
	}
	add("*", "SHA256SUMS", "SHA256SUMS.sig", "install.yaml", "monitor-rules.yaml", "slipway.yaml", "slipway-BARE.tgz")
	for _, image := range []string{"slipway-backup", "slipway-demo", "slipway-gateway", "slipway-monitor", "slipway-operator"} {
		add(image+"-VERSION*", ".oci.tar", "-amd64.tar", "-arm64.tar", "-linux-amd64.cdx.json", "-linux-arm64.cdx.json")
	}
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		add("kubectl-slipway-VERSION-"+platform+"*", ".tar.gz", ".cdx.json")
	}
	add("kubectl-slipway-VERSION-windows-*", "amd64.zip", "arm64.zip", "amd64.cdx.json", "arm64.cdx.json")
	wanted := map[string]bool{}
	for _, name := range want {
		wanted[name] = true
	}
	got := map[string]bool{}
	for name := range sums(t, made.first) {
		got[name] = true
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("files of the release (-want +got):\n%s", diff)
	}
}

// The release holds nothing that is refused: TestEntriesThatAreRefused and the tests beside
// it, in package inspect, say what that is.
func TestContents(t *testing.T) {
	release := inspect.Release{Version: made.version, Created: made.created}
	if err := release.Folder(made.first); err != nil {
		t.Error(err)
	}
}

// Programs say nothing about the machine that built them.
func TestNothingOfTheMachineIsInPrograms(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	secrets := append([]string{home + "/go", "dist-test-"}, made.clones...)
	for _, program := range []string{"slipway-operator", "slipway-gateway", "slipway-backup", "slipway-monitor", "slipway-demo"} {
		for _, image := range images(t, program) {
			for _, secret := range secrets {
				if bytes.Contains(image.Program, []byte(secret)) {
					t.Errorf("%s for %s holds %q", program, image.Architecture, secret)
				}
			}
		}
	}
}

// images are the images of a program, from the archive for all architectures.
func images(t *testing.T, program string) []inspect.Image {
	t.Helper()
	release := inspect.Release{Version: made.version, Created: made.created}
	all, err := release.Images(read(t, filepath.Join(made.first, program+"-"+made.version+".oci.tar")), program)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// runner is what a program for an architecture is run with on this machine.
var runner = map[string][]string{"amd64": nil, "arm64": {"qemu-aarch64-static"}}

// saved writes the program of an image to a file, and returns the words that run it.
func saved(t *testing.T, image inspect.Image) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, image.Program, 0o700); err != nil {
		t.Fatal(err)
	}
	return append(append([]string{}, runner[image.Architecture]...), file)
}

// Each program runs on its machine, and says the version of the release.
func TestProgramsRunAndSayTheirVersion(t *testing.T) {
	for _, program := range []string{"slipway-operator", "slipway-gateway", "slipway-backup", "slipway-monitor"} {
		for _, image := range images(t, program) {
			if got := strings.TrimSpace(output(t, append(saved(t, image), "--version")...)); got != made.version {
				t.Errorf("%s for %s says %q, want %q", program, image.Architecture, got, made.version)
			}
		}
	}
	for architecture, words := range runner {
		folder := t.TempDir()
		output(t, "tar", "-C", folder, "-xzf", filepath.Join(made.first, "kubectl-slipway-"+made.version+"-linux-"+architecture+".tar.gz"))
		got := output(t, append(append([]string{}, words...), filepath.Join(folder, "kubectl-slipway"), "version")...)
		if want := "kubectl slipway " + made.version + " ("; !strings.HasPrefix(got, want) || !strings.Contains(got, "linux/"+architecture) {
			t.Errorf("the plugin for %s says %q, want %q", architecture, got, want)
		}
	}
}

// Both ways to install start the programs of the release.
func TestManifestsNameTheImages(t *testing.T) {
	helm := strings.TrimSpace(output(t, "../tool.sh", "helm"))
	chart := filepath.Join(made.first, "slipway-"+strings.TrimPrefix(made.version, "v")+".tgz")
	for name, manifest := range map[string]string{
		"install.yaml": string(read(t, filepath.Join(made.first, "install.yaml"))),
		"the chart":    output(t, helm, "template", "slipway", chart),
	} {
		for _, want := range []string{" image: " + registry + "/slipway-operator:", " image: " + registry + "/slipway-monitor:", "--gateway-image=" + registry + "/slipway-gateway:", "--backup-image=" + registry + "/slipway-backup:"} {
			if want += made.version + "\n"; strings.Count(manifest, want) != 1 {
				t.Errorf("%s has %q %d times", name, want, strings.Count(manifest, want))
			}
		}
	}
	output(t, helm, "lint", "--strict", chart)
}

// On each architecture the gateway does more than print its version: it proxies a
// request to a backend of this test.
func TestGatewayServes(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s from the backend", r.URL.Path)
	}))
	defer backend.Close()
	for _, image := range images(t, "slipway-gateway") {
		t.Run(image.Architecture, func(t *testing.T) {
			public, admin := freeAddress(t), freeAddress(t)
			config := filepath.Join(t.TempDir(), "gateway.yaml")
			text := fmt.Sprintf("apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: edge}\nspec:\n  routes:\n"+
				"    - {host: api.localhost, path: /users/, backendService: {name: users, port: 80}}\n"+
				"backends:\n  users:80: {addresses: [%q]}\n...\n", backend.Listener.Addr().String())
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			words := append(saved(t, image), "--config", config, "--http", public, "--admin", admin)
			run := exec.CommandContext(t.Context(), words[0], words[1:]...)
			var said bytes.Buffer
			run.Stdout, run.Stderr = &said, &said
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			answer := untilAnswered(t, public)
			if err := run.Process.Kill(); err != nil {
				t.Error(err)
			}
			if err := run.Wait(); err == nil {
				t.Error("the gateway was killed and ended well")
			}
			if answer != "/users/ from the backend" {
				t.Errorf("answer %q; the gateway says:\n%s", answer, said.String())
			}
		})
	}
}

// untilAnswered asks the gateway until it answers with what a backend says.
func untilAnswered(t *testing.T, address string) string {
	t.Helper()
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/users/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "api.localhost"
		if response, err := http.DefaultClient.Do(request); err == nil {
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				return string(text)
			}
		}
		select {
		case <-ticks.C:
		case <-deadline:
			return "nothing within two minutes"
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
