//go:build apitest

package operator_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// freeAddress returns an address of this machine at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// token makes a ServiceAccount and returns a token of it.
func token(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := env.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// get asks for an URL and returns the status and the body.
func get(ctx context.Context, url, token string) (int, string, error) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it signs its certificate itself
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestMetricsAreForThoseWhomTheAPIServerLetsGetThem(t *testing.T) {
	namespace, address := env.Namespace(t), freeAddress(t)
	reader, stranger := token(t, namespace, "prometheus"), token(t, namespace, "stranger")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: namespace}},
	}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.MetricsAddress, options.MetricsAuthentication, options.Namespaces = address, true, []string{namespace}
	})
	secure := "https://" + address + "/metrics"
	environment.Eventually(t, func() error {
		status, body, err := get(t.Context(), secure, reader)
		if err == nil && (status != http.StatusOK || !strings.Contains(body, "controller_runtime_reconcile_total")) {
			err = fmt.Errorf("status %d: %.300s", status, body)
		}
		return err
	})
	for name, tc := range map[string]struct {
		url, token string
		want       int
	}{
		"nobody":                      {secure, "", http.StatusUnauthorized},
		"an invented token":           {secure, "eyJhbGciOiJub25lIn0.e30.", http.StatusInternalServerError}, // as controller-runtime says it
		"somebody without the right":  {secure, stranger, http.StatusForbidden},
		"the reader, of another path": {"https://" + address + "/debug/pprof/", reader, http.StatusNotFound},
		"without TLS":                 {"http://" + address + "/metrics", reader, http.StatusBadRequest},
	} {
		// A connection that is closed on the way is a refusal, too.
		status, body, err := get(t.Context(), tc.url, tc.token)
		if status != tc.want || strings.Contains(body, "controller_runtime") {
			t.Errorf("%s: status %d (%v), want %d:\n%.300s", name, status, err, tc.want, body)
		}
	}
}
