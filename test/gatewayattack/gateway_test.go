package gatewayattack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// target is what is attacked: the gateway, or a proxy with a fault.
type target struct {
	name string
	// plain and secure are where HTTP and HTTPS are served.
	plain, secure string
	roots         *x509.CertPool

	patience
}

// Hosts with a meaning of their own.
const (
	hostOne   = "one.test"   // one certificate
	hostTwo   = "two.test"   // another, and another route
	hostAdmin = "admin.test" // needs the key
)

// startGateway runs the gateway's program in front of the lanes. The first lane is the recorder's, and takes what is for no
// host as well.
func startGateway(t testing.TB, lanes []*lane) *target {
	t.Helper()
	folder := t.TempDir()
	g := &target{name: "slipway-gateway", roots: x509.NewCertPool(), patience: patient}
	config := filepath.Join(folder, "gateway.yaml")
	if err := os.WriteFile(config, []byte(gatewayConfig(t, g, lanes)), 0o600); err != nil {
		t.Fatal(err)
	}
	// The system chooses the ports: one that was free a moment ago may be taken.
	anyPort := "127.0.0.1:0"
	command := exec.Command(gatewayBinary, "--config", config, "--http", anyPort, "--https", anyPort, "--admin", anyPort,
		"--access-log=false", "--drain-delay", "0s", "--drain-timeout", "1s")
	said := startProcess(t, "slipway-gateway", command)
	var at struct{ HTTP, HTTPS, Admin string }
	waitUntil(t, "the gateway listens", func() bool {
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, `"msg":"listening"`) {
				return json.Unmarshal([]byte(line), &at) == nil
			}
		}
		return false
	})
	g.plain, g.secure = at.HTTP, at.HTTPS
	waitUntil(t, "the gateway is ready", func() bool {
		response, err := http.Get("http://" + at.Admin + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return g
}

// startProcess starts a program that ends with the test, by SIGTERM.
func startProcess(t testing.TB, name string, command *exec.Cmd) *lockedbuffer.Buffer {
	t.Helper()
	said := &lockedbuffer.Buffer{}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // it ends by our signal, which is an error here
	}()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("%s has ended by itself: %v\n%s", name, command.ProcessState, said)
			return
		default:
		}
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			<-ended
		}
		if t.Failed() && testing.Verbose() {
			t.Logf("%s said:\n%s", name, said)
		}
	})
	return said
}

// gatewayConfig is the file that docs/gateway-file.md describes.
func gatewayConfig(t testing.TB, g *target, lanes []*lane) string {
	t.Helper()
	var routes, backends, policies, configMaps strings.Builder
	for _, l := range lanes {
		backend := fmt.Sprintf("backendService: {name: %s, port: 80}, retries: {attempts: 0}", l.name)
		for _, r := range []string{
			"path: /",
			"path: /private, auth: {apiKey: {secretRef: {name: keys}}}",
			"path: /secret/.*, pathType: RegularExpression, auth: {apiKey: {secretRef: {name: keys}}}",
			"path: /other, auth: {apiKey: {secretRef: {name: others}}}",
			"path: /query, queryParams: [{name: q, type: RegularExpression, value: '.*secret.*'}], auth: {apiKey: {secretRef: {name: keys}}}",
			"path: /packed, compression: {minBytes: 1}",
			"path: /kept, cache: {}",
			"path: /inside, clientAddresses: {allow: [192.0.2.0/24, '2001:db8::/32']}",
			"path: /sticky, sessionAffinity: {cookie: {name: lb}}",
			"path: /method, methods: [POST], auth: {apiKey: {secretRef: {name: keys}}}",
		} {
			fmt.Fprintf(&routes, "    - {host: %s, %s, %s}\n", l.host, r, backend)
		}
		fmt.Fprintf(&backends, "  \"%s:80\": {addresses: [%q], appProtocol: %q}\n", l.name, l.address, l.protocol)
		if l.authority != nil {
			fmt.Fprintf(&policies, "    - {name: %s, port: 80, tls: {hostname: %s, caCertificates: [{name: authority-of-%s}]}}\n", l.name, l.certified, l.name)
			fmt.Fprintf(&configMaps, "  authority-of-%s: {ca.crt: %q}\n", l.name, l.authority)
		}
	}
	first := fmt.Sprintf("backendService: {name: %s, port: 80}, retries: {attempts: 0}", lanes[0].name)
	for _, host := range []string{hostOne, hostTwo} {
		fmt.Fprintf(&routes, "    - {host: %s, path: /, %s}\n", host, first)
	}
	fmt.Fprintf(&routes, "    - {host: %s, path: /, auth: {apiKey: {secretRef: {name: keys}}}, %s}\n", hostAdmin, first)
	fmt.Fprintf(&routes, "    - {path: /, %s}\n", first) // without a host
	var secrets, tls strings.Builder
	for name, hosts := range map[string][]string{"cert-one": {hostOne}, "cert-two": {hostTwo}, "cert-rest": {"*.test"}} {
		certificate, key := newCertificate(t, g.roots, hosts)
		fmt.Fprintf(&secrets, "  %s:\n    tls.crt: |\n%s    tls.key: |\n%s", name, indent(certificate), indent(key))
		fmt.Fprintf(&tls, "    - {secretRef: {name: %s}, hosts: [\"%s\"]}\n", name, strings.Join(hosts, `", "`))
	}
	return fmt.Sprintf(`apiVersion: slipway.dev/v1alpha1
kind: APIGateway
metadata: {name: attacked}
spec:
  routes:
%s  backendPolicies:
%s  tls:
%sbackends:
%sconfigMaps:
%ssecrets:
  keys: {client: "sha256:%x"}
  others: {other: "sha256:%x"}
%s...
`, routes.String(), policies.String(), tls.String(), backends.String(), configMaps.String(), sha256.Sum256([]byte(clientKey)), sha256.Sum256([]byte(otherKey)), secrets.String())
}

func indent(text []byte) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n      ") + "\n"
}

func newCertificate(t testing.TB, roots *x509.CertPool, hosts []string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots.AppendCertsFromPEM(certificate)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// freeAddress is an address on loopback that nobody listens at, for a server that cannot say which one it has chosen. The
// port is below those that the system gives to connections, which would take it at any time.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+mathrand.IntN(12000))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func waitUntil(t testing.TB, what string, met func() bool) {
	t.Helper()
	end := time.After(time.Minute)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !met() {
		select {
		case <-end:
			t.Fatalf("waited in vain until %s", what)
		case <-look.C:
		}
	}
}
