// Package gatewayattack sends attacks to the real slipway-gateway, as raw bytes on loopback, and judges them by what the
// backends behind it saw: each request that a backend sees is one that somebody sent, once, and none is below a protected
// path without its key. docs/dev/gateway-attacks.md says what is attacked and how to read the results.
//
//   - attack_test.go: what an attack is. The families of attacks are tables in families_*_test.go.
//   - player_test.go, player_http2_test.go: the client that plays an attack, and what it got for it.
//   - reader_test.go, path_test.go: how servers read the bytes of requests, and their paths, strictly and otherwise.
//   - recorder_test.go, recorder_http2_test.go: the backend that records each byte and answers as the attack wants.
//   - judge_test.go, judge_head_test.go: the oracles.
//   - planted_test.go, planted_http2_test.go: a naive proxy with a fault, one at a time. The oracles have to find it.
//   - slow_*_test.go: clients that do not take what they ask for.
//   - gatewayapi_test.go (build tag apitest): a Gateway of the Gateway API, followed in a real API server.
//   - servers_*_test.go (build tag attack): nginx, Apache httpd, HAProxy, Tomcat and Node behind the gateway, and nginx and
//     HAProxy in front of it. `make test-gateway-attack` installs and runs them.
package gatewayattack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// gatewayBinary is the program that is attacked. TestMain builds it.
var gatewayBinary string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "gatewayattack-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gatewayattack:", err)
		os.Exit(1)
	}
	gatewayBinary = filepath.Join(folder, "slipway-gateway")
	build := exec.Command("go", "build", "-o", gatewayBinary, "../../cmd/slipway-gateway")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "gatewayattack: build the gateway: %v\n%s", err, output)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
