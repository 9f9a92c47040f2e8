//go:build apitest

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// client asks a monitor.
type client struct {
	*testing.T
	address, token string
}

// administrator makes a ServiceAccount that may do everything, and returns a token of it.
func administrator(t *testing.T) string {
	t.Helper()
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := env.Namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: namespace}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: namespace}},
	}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	answer, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "reader", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{api.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

func (c *client) open(ctx context.Context, path string) (*http.Response, error) {
	address := url.URL{Scheme: "http", Host: c.address}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String()+api.Prefix+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	return http.DefaultClient.Do(request)
}

// ask returns an error for every answer but a good one.
func (c *client) ask(path string, into any) error {
	response, err := c.open(c.Context(), path)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return json.Unmarshal(body, into)
}

func newApp(namespace, name string) *slipwayv1alpha1.WebApp {
	return &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: slipwayv1alpha1.WebAppSpec{Image: "example.com/app:1", Port: 8080},
	}
}

// streamed waits until a stream sends a change of an object.
func streamed(response *http.Response, name string) error {
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && strings.Contains(data, `"name":"`+name+`"`) {
			return nil
		}
	}
	return fmt.Errorf("the stream has ended: %w", lines.Err())
}

// TestTheMonitorAnswers runs the whole of it: while another process has the store it says so, then it records, answers, streams,
// and ends in order with a stream that is open.
func TestTheMonitorAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := config.Config{Listen: config.Listen{Metrics: config.Off, Probes: config.Off, API: fmt.Sprintf("127.0.0.1:%d", environment.FreePort(t))}}
	c.Store.Folder = t.TempDir()
	other, err := store.Open(ctx, store.Options{Dir: filepath.Join(c.Store.Folder, historyFolder)})
	if err != nil {
		t.Fatal(err)
	}
	reader := &client{t, c.Listen.API, administrator(t)}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, env.Config, Options{Config: c, Log: slog.New(slog.DiscardHandler), Extension: struct {
			*Answers
			NoRules
		}{Answers: &Answers{}}})
	}()
	environment.Eventually(t, func() error {
		if err := reader.ask("changes", nil); err == nil || !strings.Contains(err.Error(), "cannot be opened yet") {
			return fmt.Errorf("while another process has the store: %w", err)
		}
		return nil
	})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	first := newApp(env.Namespace(t), "recorded")
	if err := env.Client.Create(ctx, first); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		answer := api.Changes{}
		if err := reader.ask("history?kind=webapps.slipway.dev&name=recorded&namespace="+first.Namespace, &answer); err != nil {
			return err
		}
		if len(answer.Changes) != 1 || answer.Changes[0].UID != first.UID || !answer.View.Complete {
			return fmt.Errorf("the history is %+v", answer)
		}
		return nil
	})
	stream, err := reader.open(ctx, "stream?kind=webapps.slipway.dev")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	if err := env.Client.Create(ctx, newApp(first.Namespace, "streamed")); err != nil {
		t.Fatal(err)
	}
	if err := streamed(stream, "streamed"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
