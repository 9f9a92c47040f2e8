//go:build chartcluster

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	reader, stranger = "prometheus", "stranger"
	readerBinding    = "prometheus-slipway"
	// served is a metric that every operator has as soon as there is a WebApp.
	served = "slipway_webapp_apps{"
)

func TestMetricsAreForThoseWhomTheAPIServerLetsGetThem(t *testing.T) {
	w := begin(t)
	w.helm("install", today("--create-namespace")...)
	shop, secret := app(1)
	w.Create(secret, shop)
	w.Eventually(w.appReady)
	tokens := map[string]string{"": "", stranger: w.token(stranger), reader: w.token(reader)}
	w.bindReader()

	pods, err := cluster.OperatorPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 2 {
		t.Fatalf("%d operators, want 2", len(pods))
	}
	for _, pod := range pods {
		// The API server needs a moment to know of the binding.
		w.Eventually(func() error {
			code, body, err := w.get("https", &pod, tokens[reader])
			if err == nil && (code != http.StatusOK || !strings.Contains(body, served)) {
				err = fmt.Errorf("pod %q answers its reader %d, %.300q", pod.Name, code, body)
			}
			return err
		})
		for who, want := range map[string]int{"": http.StatusUnauthorized, stranger: http.StatusForbidden} {
			code, body, err := w.get("https", &pod, tokens[who])
			if err != nil || code != want || strings.Contains(body, served) {
				t.Errorf("pod %q answers %q %d, %v, want %d and no metrics:\n%.300q", pod.Name, who, code, err, want, body)
			}
		}
		if code, body, err := w.get("http", &pod, tokens[reader]); err == nil && (code == http.StatusOK || strings.Contains(body, served)) {
			t.Errorf("pod %q answers %d without TLS: %.300q", pod.Name, code, body)
		}
	}
}

// token makes a ServiceAccount and returns a token of it.
func (w *world) token(name string) string {
	w.Helper()
	account, request := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, &authenticationv1.TokenRequest{}
	w.Create(account)
	if err := cluster.SubResource("token").Create(w.Context(), account, request); err != nil {
		w.Fatal(err)
	}
	return request.Status.Token
}

// bindReader binds the ClusterRole as docs/install.md says.
func (w *world) bindReader() {
	w.Helper()
	w.Cleanup(func() {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: readerBinding}}
		if err := cluster.Delete(context.WithoutCancel(w.Context()), binding); err != nil {
			w.Error(err)
		}
	})
	w.kubectl("create", "clusterrolebinding", readerBinding, "--clusterrole=slipway-metrics-reader", "--serviceaccount="+w.Namespace+":"+reader)
}

// get asks a pod for its metrics.
func (w *world) get(scheme string, pod *corev1.Pod, token string) (code int, body string, err error) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // each operator signs its certificate itself
	}}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, scheme+"://"+pod.Status.PodIP+":8080/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}
