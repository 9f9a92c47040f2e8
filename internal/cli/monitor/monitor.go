package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	monitorNamespace = "slipway-system"
	// maxMonitorAnswer bounds what is read of an answer, in bytes.
	maxMonitorAnswer = 64 << 20
	monitorTimeout   = 40 * time.Second
	accountTokenLife = 10 * time.Minute
)

// monitorFlags say how the monitor is reached.
type monitorFlags struct {
	namespace, account, address string
}

func (f *monitorFlags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "monitor-namespace", monitorNamespace, "the namespace in which the monitor runs")
	cmd.Flags().StringVar(&f.account, "monitor-account", "",
		"ask as this ServiceAccount, NAMESPACE/NAME, with a token of it for the monitor alone")
	cmd.Flags().StringVar(&f.address, "monitor-url", "", "ask the monitor at this https address, and not through the API server")
}

// mayList says who asks, and of where: what an answer without anything is about. namespace is empty for all.
func (f *monitorFlags) mayList(namespace string) string {
	who := "you"
	if f.account != "" {
		who = "the ServiceAccount " + command.Printable(f.account)
	}
	if namespace != "" {
		return fmt.Sprintf("%s may list in namespace %q", who, namespace)
	}
	return who + " may list in all namespaces; rights in one namespace count with -n NAMESPACE"
}

// monitorClient asks the monitor. The token of the user goes to it and to nobody else.
type monitorClient struct {
	http *http.Client
	base *url.URL
	stop func()
}

// errNoToken is a user without a token.
var errNoToken = errors.New(`your kubeconfig has no token, and the monitor cannot know you by a client certificate:
the certificate ends at the API server. Name a ServiceAccount that may see what you want to see, and that you may
make tokens of: --monitor-account NAMESPACE/NAME`)

// newMonitorClient makes a client. Nothing is sent yet but the request for a token of a ServiceAccount.
func newMonitorClient(ctx context.Context, p *command.Program, f *monitorFlags) (*monitorClient, error) {
	config, err := p.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	if f.account == "" && (config.Impersonate.UserName != "" || len(config.Impersonate.Groups) > 0) {
		return nil, command.UsageErrorf("the monitor does not act as another user (--as): name a ServiceAccount with --monitor-account")
	}
	clients, err := p.Clients()
	if err != nil {
		return nil, err
	}
	m := &monitorClient{stop: func() {}}
	transport := &http.Transport{Proxy: nil, ForceAttemptHTTP2: false, MaxIdleConnsPerHost: 4, ResponseHeaderTimeout: monitorTimeout}
	if f.address != "" {
		if m.base, err = monitorAddress(f.address); err != nil {
			return nil, err
		}
		transport.Proxy = http.ProxyFromEnvironment
	} else {
		t, err := newTunnel(ctx, clients, config, f.namespace)
		if err != nil {
			return nil, err
		}
		m.stop, transport.DialContext = t.close, t.dial
		m.base = &url.URL{Scheme: "http", Host: "localhost"}
	}
	trip, err := withToken(ctx, clients, config, f.account, transport)
	if err != nil {
		m.stop()
		return nil, err
	}
	m.http = &http.Client{Transport: trip, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return m, nil
}

// monitorAddress accepts addresses to which a token can be sent.
func monitorAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, command.UsageErrorf("--monitor-url is an address such as https://monitor.example.com")
	}
	ip := net.ParseIP(address.Hostname())
	local := address.Scheme == "http" && ip != nil && ip.IsLoopback()
	if address.Scheme != "https" && !local {
		return nil, command.UsageErrorf("--monitor-url must be https: your token is sent there")
	}
	address.Path = strings.TrimSuffix(address.Path, "/")
	return address, nil
}

// withToken adds a token to requests: of the ServiceAccount, or that of the user, as the kubeconfig or its plugin gives it.
func withToken(
	ctx context.Context, c *command.Clients, config *rest.Config, account string, to http.RoundTripper,
) (http.RoundTripper, error) {
	if account == "" {
		own := rest.CopyConfig(config)
		own.WrapTransport = nil
		// Basic authentication would send a password, and the monitor takes none.
		own.Username, own.Password = "", ""
		trip, err := rest.HTTPWrappersForConfig(own, needsToken{to})
		if err != nil {
			return nil, fmt.Errorf("find your token: %w", err)
		}
		return trip, nil
	}
	namespace, name, found := strings.Cut(account, "/")
	if !found || namespace == "" || name == "" {
		return nil, command.UsageErrorf("--monitor-account is NAMESPACE/NAME")
	}
	answer, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{api.Audience}, ExpirationSeconds: ptr.To(int64(accountTokenLife / time.Second)),
		},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not make tokens of the ServiceAccount %s (create serviceaccounts/token)", account)
	case err != nil:
		return nil, fmt.Errorf("make a token of the ServiceAccount %s: %w", account, err)
	}
	return tokenOf{answer.Status.Token, to}, nil
}

// needsToken refuses to send a request that has no token.
type needsToken struct{ http.RoundTripper }

func (t needsToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return nil, errNoToken
	}
	return t.RoundTripper.RoundTrip(r)
}

// tokenOf sends a token with each request.
type tokenOf struct {
	token string
	http.RoundTripper
}

func (t tokenOf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.RoundTripper.RoundTrip(r)
}

// ask sends a request, and reads the answer.
func (m *monitorClient) ask(ctx context.Context, endpoint string, params url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	address := m.base.JoinPath(api.Prefix, endpoint)
	address.RawQuery = params.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := m.http.Do(r)
	switch {
	case errors.Is(err, errNoToken):
		return errNoToken
	case err != nil:
		return fmt.Errorf("ask the monitor: %w", errors.Unwrap(err))
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMonitorAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of the monitor: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return monitorRefusal(answer.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("what answers is not the monitor: %w", err)
	}
	return nil
}

// monitorRefusal says why the monitor did not answer.
func monitorRefusal(code int, body []byte) error {
	f := &failure.Failure{}
	if json.Unmarshal(body, f) != nil || f.Message == "" {
		return fmt.Errorf("what answers is not the monitor: HTTP %d", code)
	}
	message := command.Printable(f.Message)
	switch f.Reason {
	case failure.Unauthenticated:
		message = "the monitor does not know you: the cluster does not accept your token, or not any more"
	case failure.NotFound:
		message += "; who may list a kind in a namespace sees its changes there: try -n NAMESPACE"
	}
	return errors.New(message)
}
