//go:build observability

package observability

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// ports are where the metrics of the programs are.
type ports struct {
	operators, gateways []int
}

// startOperators starts a leader and a standby, and gives them something to do: an application that was rolled back, a
// Backup, a gateway of each API, and rules of the monitor.
func startOperators(t *testing.T, c *cluster) []int {
	t.Helper()
	var found []int
	for i := range 2 {
		metrics, webhook := freePort(t), freePort(t)
		run(t, []string{"KUBECONFIG=" + c.kubeconfig}, tool(t, "OPERATOR"), "--leader-elect", "--leader-elect-namespace=slipway-system",
			"--metrics-bind-address="+at(metrics), "--metrics-authentication", "--health-probe-bind-address=0",
			fmt.Sprintf("--webhook-port=%d", webhook), "--webhook-host=127.0.0.1", "--monitor")
		if i == 0 {
			c.installWebhook(t, webhook)
		}
		c.standIn(t, "slipway-system", fmt.Sprintf("slipway-operator-%d", i), operatorTemplate(t), "metrics", metrics)
		found = append(found, metrics)
	}
	player := workload.NewPlayer(c.client, c.client, nil, "apps", map[string]workload.Behaviour{"shop:2": workload.Crash})
	playing, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); player.Run(playing) }()
	t.Cleanup(func() { stop(); <-done })
	app := decode(t, "{apiVersion: slipway.dev/v1alpha1, kind: WebApp, metadata: {namespace: apps, name: shop}, spec: {image: 'shop:1', port: 8080}}")[0]
	c.create(t, app)
	waitFor(t, c, slipwayv1alpha1.ConditionReady)
	eventually(t, 2*time.Minute, func() error {
		good := &slipwayv1alpha1.WebApp{}
		err := c.client.Get(t.Context(), client.ObjectKeyFromObject(app), good)
		if err == nil && good.Status.LastGoodRevision == "" {
			err = fmt.Errorf("the WebApp has no revision to return to: %+v", good.Status)
		}
		return err
	})
	if err := c.client.Patch(t.Context(), app, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":"shop:2"}}`))); err != nil {
		t.Fatal(err)
	}
	waitFor(t, c, slipwayv1alpha1.ConditionRolledBack)
	c.create(t, decode(t, `{apiVersion: slipway.dev/v1alpha1, kind: Backup, metadata: {namespace: shop, name: data}, spec: {source: data,
destination: "s3://backups", schedule: "@daily"}}`)[0])
	c.create(t, decode(t, `{apiVersion: slipway.dev/v1alpha1, kind: APIGateway, metadata: {namespace: shop, name: edge}, spec: {routes: [
{path: /, backendService: {name: none, port: 80}}]}}`)[0])
	for _, object := range decode(t, gatewayAndRules) {
		c.create(t, object)
	}
	return found
}

// gatewayAndRules are a Gateway that no pod serves, a rule that raises an alarm for every application, and one that fails for each.
const gatewayAndRules = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: slipway}
spec: {controllerName: slipway.dev/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: public}
spec: {gatewayClassName: slipway, listeners: [{name: web, port: 80, protocol: HTTP}]}
---
apiVersion: slipway.dev/v1alpha1
kind: MonitorRule
metadata: {name: every-app}
spec: {kinds: [{group: slipway.dev, kind: WebApp}], when: "true", severity: Warning, outputs: {webhooks: [on-call]}}
---
apiVersion: slipway.dev/v1alpha1
kind: MonitorRule
metadata: {name: no-such-field}
spec: {kinds: [{group: slipway.dev, kind: WebApp}], when: object.spec.missing == 1}
`

// startMonitor starts the monitor, as an administrator.
func startMonitor(t *testing.T, c *cluster) {
	t.Helper()
	metrics := freePort(t)
	reported := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(reported.Close)
	file := writeFile(t, "config.yaml", []byte(fmt.Sprintf("listen: {metrics: %q, probes: \"0\", api: \"0\"}\nstore: {folder: %q}\nwebhooks: [{name: on-call, url: %q}]\n",
		at(metrics), t.TempDir(), reported.URL)))
	run(t, nil, tool(t, "MONITOR"), "--config="+file, "--kubeconfig="+c.kubeconfig)
	set := &appsv1.StatefulSet{}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(root, "config", "monitor", "statefulset.yaml"))), set); err != nil {
		t.Fatal(err)
	}
	// Nobody makes its volume.
	set.Spec.Template.Spec.Containers[0].VolumeMounts, set.Spec.Template.Spec.Volumes = nil, nil
	c.standIn(t, "slipway-system", "slipway-monitor-0", set.Spec.Template, "metrics", metrics)
}

// waitFor waits until a condition of the WebApp is True.
func waitFor(t *testing.T, c *cluster, condition string) {
	t.Helper()
	eventually(t, 2*time.Minute, func() error {
		app := &slipwayv1alpha1.WebApp{}
		err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "apps", Name: "shop"}, app)
		if err == nil && !meta.IsStatusConditionTrue(app.Status.Conditions, condition) {
			err = fmt.Errorf("the WebApp is not %s: %+v", condition, app.Status.Conditions)
		}
		return err
	})
}

// gatewayFile is the configuration of the gateways. Some of it is broken, so that there is trouble to measure.
const gatewayFile = `
apiVersion: slipway.dev/v1alpha1
kind: APIGateway
metadata: {name: edge}
spec:
  tls: [{secretRef: {name: edge-tls}, hosts: [shop.example.com]}]
  healthChecks: [{name: sick, port: 80, path: /healthz, periodSeconds: 1, timeoutSeconds: 1, unhealthyThreshold: 1}]
  routes:
    - {name: well, path: /well, backendService: {name: well, port: 80}}
    - {name: sick, path: /sick, backendService: {name: sick, port: 80}}
    - {name: away, path: /away, backendService: {name: away, port: 80}}
    - {name: token, path: /token, backendService: {name: well, port: 80}, auth: {jwt: {issuer: "https://issuer.example.com", jwksURL: "https://127.0.0.1:1/keys"}}}
    - {name: nothing, path: /nothing, backendService: {name: nothing, port: 80}}
    - {name: kept, path: /kept, backendService: {name: well, port: 80}, cache: {}}
    - {name: smaller, path: /smaller, backendService: {name: well, port: 80}, compression: {}}
    - {name: asked, path: /asked, backendService: {name: well, port: 80}, auth: {external: {backendService: {name: well, port: 80}}}}
backends:
  well:80: {addresses: [%q]}
  sick:80: {addresses: [%q]}
  away:80: {addresses: ["127.0.0.1:1"]}
secrets:
  edge-tls: {tls.crt: %q, tls.key: %q}
...
`

// startGateways starts two replicas and sends them requests until the test ends.
func startGateways(t *testing.T) []int {
	t.Helper()
	text := []byte(strings.Repeat("well ", 1000))
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(text)
	}))
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(well.Close)
	t.Cleanup(sick.Close)
	certificate, key := newCertificate(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	content := fmt.Sprintf(gatewayFile, strings.TrimPrefix(well.URL, "http://"), strings.TrimPrefix(sick.URL, "http://"), certificate, key)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var found []int
	for range 2 {
		serving, secure, admin := freePort(t), freePort(t), freePort(t)
		run(t, nil, tool(t, "GATEWAY"), "--config="+file, "--http="+at(serving), "--https="+at(secure), "--admin="+at(admin),
			"--drain-delay=0s", "--access-log=false")
		eventually(t, 30*time.Second, func() error { _, err := get("http://" + at(admin) + "/readyz"); return err })
		sendRequests(t, "http://"+at(serving))
		found = append(found, admin)
	}
	return found
}

// sendRequests asks for every route again and again.
func sendRequests(t *testing.T, address string) {
	t.Helper()
	sending, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, path := range []string{"/well", "/sick", "/away", "/token", "/nothing", "/unknown", "/kept", "/smaller", "/asked"} {
				_, _ = get(address + path) // most are to fail
			}
			select {
			case <-sending.Done():
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// newCertificate returns a certificate with its key, in PEM.
func newCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"shop.example.com"}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	if _, err := tls.X509KeyPair([]byte(certificate), []byte(key)); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
