package static

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guardedFile has auth in the places where a cut could lose it: as the last field of a
// route, after the route, in the only route, and in a route in braces.
const guardedFile = head + `
spec:
  routes:
    - path: /last/
      backendService:
        name: app
        port: 80
      auth:
        apiKey:
          secretRef:
            name: keys
    - auth: {apiKey: {secretRef: {name: keys}}}
      path: /first/
      backendService: {name: app, port: 80}
    - path: /regex
      pathType: RegularExpression
      directResponse: {statusCode: 200, body: "..."}
      auth:
        apiKey: {secretRef: {name: keys}}
backends:
  app:80: {addresses: ["127.0.0.1:9001"]}
secrets:
  keys: {alice: "sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5"}
`

const guardedBraces = `{apiVersion: slipway.dev/v1alpha1, kind: APIGateway, metadata: {name: edge},
spec: {routes: [{path: /a, directResponse: {statusCode: 200},
  auth: {apiKey: {secretRef: {name: keys}}}}]},
secrets: {keys: {alice: "sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5"}}}
`

// open returns the names of the routes without auth.
func open(config *Config) []string {
	var names []string
	for _, route := range config.Proxy.Table.Routes {
		if route.Auth == nil && route.Unavailable == nil {
			names = append(names, route.Name)
		}
	}
	return names
}

func TestNoPartOfAFileIsServedWithoutItsAuth(t *testing.T) {
	valid := 0
	for _, whole := range []string{guardedFile + "...\n", guardedBraces, guardedFile + "# a comment\n...\n\n"} {
		for cut := 0; cut <= len(whole); cut++ {
			if config, err := Parse([]byte(whole[:cut])); err == nil && len(open(config)) > 0 {
				valid++
			}
			path := filepath.Join(t.TempDir(), "gateway.yaml")
			if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
				t.Fatal(err)
			}
			served := 0
			f := &follower{parse: Parse, path: path, apply: func(config *Config) error {
				served++
				if names := open(config); len(names) > 0 {
					t.Errorf("cut after byte %d, everybody is let into %v:\n%s", cut, names, whole[:cut])
				}
				return nil
			}}
			err := f.look()
			if rest := strings.TrimSpace(whole[cut:]); (err == nil) != (rest == "") || (served == 1) != (rest == "") {
				t.Errorf("cut after byte %d: served %d times, error %v", cut, served, err)
			}
		}
	}
	if valid == 0 {
		t.Error("no cut loses the auth of a route, so that nothing is shown")
	}
}

func TestAFileThatIsBeingWrittenIsNotServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	// The shorter text is written over the longer one, so the file always ends like a
	// complete one.
	before, after := guardedFile+"# "+strings.Repeat("x", 2000)+"\n...\n", strings.Replace(guardedFile, "/last/", "/new/", 1)+"...\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var served []string
	f := &follower{parse: Parse, path: path, apply: func(config *Config) error {
		served = append(served, config.Proxy.Table.Routes[0].Name)
		return nil
	}}
	look := func() {
		t.Helper()
		if err := f.look(); err != nil {
			t.Fatal(err)
		}
	}
	look()
	file, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i := 0; i < len(after); i += 50 {
		if _, err := file.WriteString(after[i:min(i+50, len(after))]); err != nil {
			t.Fatal(err)
		}
		look()
	}
	if err := file.Truncate(int64(len(after))); err != nil {
		t.Fatal(err)
	}
	look()
	if got := strings.Join(served, " "); got != "/last/" {
		t.Errorf("served while it was written: %s", got)
	}
	look()
	look()
	if got := strings.Join(served, " "); got != "/last/ /new/" {
		t.Errorf("got %s", got)
	}
}

func TestWhatComesAfterTheEndIsNothing(t *testing.T) {
	config, err := Parse([]byte(guardedFile + "...\n---\nkind: other\n...\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(config.Proxy.Table.Routes); got != 3 || len(config.Problems) != 0 {
		t.Errorf("%d routes, problems %v", got, config.Problems)
	}
}
