package monitor

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	uiCookie = "slipway-ui"
	// uiEntrance is how long the printed address works.
	uiEntrance = 5 * time.Minute
	// uiRenewal is after how long a token of a ServiceAccount is replaced. It lasts accountTokenLife.
	uiRenewal = accountTokenLife / 2
	// uiProxyHeader tells the page that it is not served by the monitor itself: there is no log-in to end.
	uiProxyHeader = "Slipway-Proxy"
)

// uiProxy is the page of the monitor for one browser on this machine. It adds the credentials of the user.
//
// What is promised: a request is only passed on when its Host is the very address that the proxy listens at, its path begins with
// a secret and stays below it, and it has the cookie that was given for the code in the printed address. The code works once. The
// path is secret because a browser sends cookies to every port of a host: a server that another user runs on another port must not
// be sent this one. Only GET and HEAD are passed on, and only for the page and the API.
type uiProxy struct {
	// address is where the proxy listens, as a Host header has it.
	address            string
	code, path, cookie string
	made               time.Time
	clock              clock.PassiveClock
	proxy              *httputil.ReverseProxy
	// again makes another client. With lasting credentials, which renew themselves, there is no need to.
	again   func(context.Context) (*monitorClient, error)
	lasting bool

	mutex   sync.Mutex
	entered bool
	monitor *monitorClient
	renewed time.Time
}

func newUIProxy(address string, monitor *monitorClient, clock clock.PassiveClock) (*uiProxy, error) {
	if monitor == nil {
		return nil, errors.New("there is no monitor to show")
	}
	p := &uiProxy{
		address: address, code: rand.Text(), path: "/" + rand.Text() + "/", cookie: rand.Text(), clock: clock, made: clock.Now(),
		monitor: monitor, renewed: clock.Now(), lasting: true,
	}
	p.proxy = &httputil.ReverseProxy{Rewrite: p.rewrite, Transport: p, ModifyResponse: p.modify, ErrorHandler: p.failed, FlushInterval: -1}
	return p, nil
}

// entrance is the address to print.
func (p *uiProxy) entrance() string { return "http://" + p.address + "/open/" + p.code }

// ServeHTTP answers nothing but what is promised above.
func (p *uiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	site := r.Header.Get("Sec-Fetch-Site")
	code, entering := strings.CutPrefix(r.URL.Path, "/open/")
	switch {
	case r.Host != p.address:
		// A page of another site whose name leads here (DNS rebinding) has that name in this header.
		refuseUI(w, http.StatusMisdirectedRequest, "this is not the address of the page")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuseUI(w, http.StatusMethodNotAllowed, "this can only be read")
	case entering && r.Method == http.MethodGet:
		p.enter(w, r, code)
	case site != "" && site != "same-origin" && site != "none":
		refuseUI(w, http.StatusForbidden, "another site may not ask")
	case !strings.HasPrefix(r.URL.Path, p.path), !p.known(r):
		refuseUI(w, http.StatusForbidden, "this page is for the browser that opened it first: run kubectl slipway ui again")
	case !isInside(strings.TrimPrefix(r.URL.Path, p.path)):
		refuseUI(w, http.StatusBadRequest, "this path leads out of the page")
	default:
		p.proxy.ServeHTTP(w, r)
	}
}

// isInside reports whether a path stays below the address of the monitor, whoever resolves it: the address may be one of the API
// server, where everything else is reached with the same credentials.
func isInside(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "\\%")
}

// enter gives the cookie for the code, once. A browser that looks at links before they are opened (Sec-Purpose: prefetch) does not
// use the code up.
func (p *uiProxy) enter(w http.ResponseWriter, r *http.Request, code string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	late := p.clock.Since(p.made) > uiEntrance
	if !same(code, p.code) || p.entered || late || r.Header.Get("Sec-Purpose") != "" {
		refuseUI(w, http.StatusForbidden, "this address does not work, or not any more: run kubectl slipway ui again")
		return
	}
	p.entered = true
	http.SetCookie(w, &http.Cookie{Name: uiCookie, Value: p.cookie, Path: p.path, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	secureUI(w)
	// Not a redirect: a browser that came from the file of --open, which is another site, would not send a strict cookie after one.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w,
		`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=`+p.path+
			`"><title>Slipway monitor</title><p><a href="`+p.path+`">Slipway monitor</a></p>`)
}

func (p *uiProxy) known(r *http.Request) bool {
	cookies := r.CookiesNamed(uiCookie)
	return len(cookies) == 1 && same(cookies[0].Value, p.cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// rewrite makes the request for the monitor. Of what the browser sent, only what says which answer is wanted goes on.
func (p *uiProxy) rewrite(r *httputil.ProxyRequest) {
	// Without a path of its own the address would be joined to one that does not begin with a slash.
	base := *p.client().base
	if base.Path == "" {
		base.Path = "/"
	}
	r.Out.URL = base.JoinPath(strings.TrimPrefix(r.In.URL.Path, p.path))
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Host = ""
	header := http.Header{}
	for _, name := range []string{"Accept", "Accept-Encoding", "If-None-Match", "Last-Event-Id"} {
		if value := r.In.Header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	r.Out.Header = header
}

// RoundTrip asks the monitor.
func (p *uiProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.renew(r.Context()); err != nil {
		return nil, err
	}
	return p.client().http.Transport.RoundTrip(r)
}

func (p *uiProxy) client() *monitorClient {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.monitor
}

// renew gets another token where the one at hand ends soon. Streams end with the old one, and browsers come back.
func (p *uiProxy) renew(ctx context.Context) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.lasting || p.clock.Since(p.renewed) < uiRenewal {
		return nil
	}
	next, err := p.again(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	old := p.monitor
	p.monitor, p.renewed = next, p.clock.Now()
	old.http.CloseIdleConnections()
	old.stop()
	return nil
}

// modify answers for the monitor where the browser could do nothing with its answer.
func (p *uiProxy) modify(r *http.Response) error {
	r.Header.Del("Set-Cookie")
	r.Header.Set(uiProxyHeader, "kubectl")
	switch r.StatusCode {
	case http.StatusUnauthorized:
		return errors.New("the cluster does not accept your credentials, or not any more: run kubectl slipway ui again")
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return errors.New("what answers is not the monitor: it leads somewhere else")
	}
	return nil
}

func (p *uiProxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the browser has gone
	}
	w.Header().Set(uiProxyHeader, "kubectl")
	refuseUI(w, http.StatusBadGateway, command.Printable(err.Error()))
}

// secureUI sets the headers of answers of the proxy's own. Those of the monitor have theirs.
func secureUI(w http.ResponseWriter) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		w.Header().Set(name, value)
	}
}

// refuseUI answers like the monitor does, so that the page can show it.
func refuseUI(w http.ResponseWriter, code int, message string) {
	secureUI(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(&failure.Failure{Code: code, Reason: failure.Unavailable, Message: message})
}
