//go:build apitest

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// apiToken returns a token of a ServiceAccount, which it makes if there is none, for the API server.
func apiToken(t *testing.T, kube kubernetes.Interface, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	answer, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// bindMetrics lets a ServiceAccount get metrics, and nothing else.
func bindMetrics(t *testing.T, namespace, name string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}},
	}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// TestTheMonitorsMetricsAreForThoseWhomTheAPIServerLetsGetThem asks with several tokens, and where authentication is off.
func TestTheMonitorsMetricsAreForThoseWhomTheAPIServerLetsGetThem(t *testing.T) {
	kube := kubernetes.NewForConfigOrDie(env.Config)
	home := env.Namespace(t)
	forMonitor := editor(t, kube, "", home, "stranger").token
	stranger, reader := apiToken(t, kube, home, "stranger"), apiToken(t, kube, home, "reader")
	bindMetrics(t, home, "reader")
	off := false
	for name, tc := range map[string]struct {
		authentication *bool
		scheme, token  string
		want           int
	}{
		"nobody":                     {nil, "https", "", http.StatusUnauthorized},
		"somebody without the right": {nil, "https", stranger, http.StatusForbidden},
		"a token for the monitor":    {nil, "https", forMonitor, http.StatusInternalServerError}, // as controller-runtime says that it is unknown
		"somebody with the right":    {nil, "https", reader, http.StatusOK},
		"without TLS":                {nil, "http", reader, http.StatusBadRequest},
		"anybody where it is off":    {&off, "http", "", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			address := fmt.Sprintf("127.0.0.1:%d", environment.FreePort(t))
			c := config.Config{Listen: config.Listen{Metrics: address, Probes: config.Off, API: config.Off, MetricsAuthentication: tc.authentication}}
			c.Store.Folder = t.TempDir()
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, env.Config, Options{Config: c, Log: slog.New(slog.DiscardHandler)}) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) { // it may not have begun yet
					t.Error(err)
				}
			}()
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true,
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it signs its certificate itself
			}}
			environment.Eventually(t, func() error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, tc.scheme+"://"+address+"/metrics", http.NoBody)
				if err != nil {
					return err
				}
				if tc.token != "" {
					request.Header.Set("Authorization", "Bearer "+tc.token)
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if response.StatusCode != http.StatusOK {
					err = nil // who speaks no TLS is cut off
				}
				reported := strings.Contains(string(body), "go_goroutines")
				if err != nil || response.StatusCode != tc.want || reported != (tc.want == http.StatusOK) {
					return fmt.Errorf("%s, want %d (%w): %.200s", response.Status, tc.want, err, body)
				}
				return nil
			})
		})
	}
}
