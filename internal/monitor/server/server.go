package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/guard"
	"github.com/slipway-dev/slipway/internal/web/page"
	"github.com/slipway-dev/slipway/internal/web/rights"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

const (
	// answerWithin is how long an answer may take, each step of a stream too, and sentWithin how long its bytes may take.
	answerWithin = 20 * time.Second
	sentWithin   = 30 * time.Second
	// maxHeader is how many bytes the headers of a request may have.
	maxHeader = 48 << 10
)

// server answers requests.
type server struct {
	options  Options
	tokens   *signin.Authenticator
	sessions *signin.Sessions
	access   *rights.Authorizer
	limits   *guard.Limits
	cursors  cursors
	index    *index
	// within is answerWithin, unless a test sets it.
	within time.Duration
}

// request is a request of somebody who is known.
type request struct {
	*http.Request
	user   *signin.User
	rights grants
	params params
	kinds  *kinds
}

// endpoint answers a request. What it returns is written as JSON, with the view.
type endpoint struct {
	// params are the parameters that it knows.
	params []string
	answer func(s *server, r *request) (answer any, view *api.View, err error)
}

func endpoints() map[string]endpoint {
	return map[string]endpoint{
		"whoami":      {nil, (*server).whoami},
		"kinds":       {[]string{paramNamespace}, (*server).listKinds},
		"coverage":    {[]string{paramNamespace}, (*server).coverage},
		"changes":     {changesParams(), (*server).changes},
		"history":     {historyParams(), (*server).history},
		"object":      {[]string{paramKind, paramNamespace, paramName, paramUID, paramAt}, (*server).object},
		"health":      {[]string{paramKind, paramNamespace, paramAll, paramLimit}, (*server).health},
		"definitions": {[]string{paramName, paramContent}, (*server).definitions},
		"gaps":        {[]string{paramKind, paramNamespace, paramSince, paramLimit, paramCursor}, (*server).gaps},
		"rate":        {[]string{paramKind, paramNamespace, paramSince, paramBuckets}, (*server).rate},
		"rules":       {nil, (*server).rules},
	}
}

// New returns a handler that answers all requests to the monitor: of probes, of the API and of the page. Use HTTPServer to serve
// it, or set the same bounds.
func New(options Options) (http.Handler, error) {
	handler, _, err := newServer(options)
	return handler, err
}

func newServer(options Options) (http.Handler, *server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	s := &server{
		options: options, access: rights.NewAuthorizer(options.rights()), limits: guard.NewLimits(options.guard()), within: answerWithin,
	}
	who := options.signin(s)
	s.tokens = signin.NewAuthenticator(who)
	if s.sessions, err = signin.NewSessions(who, s.tokens); err != nil {
		return nil, nil, err
	}
	if s.cursors.Sealer, err = signin.NewSealer(options.Key, api.Audience+" cursors", true); err != nil {
		return nil, nil, err
	}
	s.index = newIndex(s)
	handler, err := s.handler()
	return handler, s, err
}

func (s *server) handler() (http.Handler, error) {
	inner := http.NewServeMux()
	for name, e := range endpoints() {
		inner.Handle(api.Prefix+name, guard.ReadOnly(s.known(false, func(w http.ResponseWriter, r *request) { s.serve(w, r, e) })))
	}
	inner.Handle(api.Prefix+"stream", guard.ReadOnly(s.known(true, s.stream)))
	inner.HandleFunc("/login", s.sessions.Login)
	inner.HandleFunc("/logout", s.sessions.Logout)
	if s.options.Page != nil {
		files, err := page.New(s.options.Page, notFound())
		if err != nil {
			return nil, err
		}
		inner.Handle("/{$}", guard.ReadOnly(files))
		inner.Handle("/assets/", guard.ReadOnly(files))
	}
	inner.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { failure.Refuse(w, notFound()) })
	outer := http.NewServeMux()
	outer.Handle("/healthz", guard.ReadOnly(probe(func() error { return nil })))
	outer.Handle("/readyz", guard.ReadOnly(probe(s.options.Ready)))
	outer.Handle("/", guard.Protect(s.options.guard(), inner))
	return guard.Secure(outer), nil
}

// HTTPServer returns a server with bounds on the time and the size of requests. Streams set their own deadlines.
func HTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader,
	}
}

// probe answers the kubelet. It says no more than yes or no.
func probe(ready func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if ready() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not ready\n"))
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}

// known calls next with the user, once there is room for the request.
func (s *server) known(stream bool, next func(http.ResponseWriter, *request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.within)
		defer cancel()
		if err := http.NewResponseController(w).
			SetWriteDeadline(s.options.Clock.Now().Add(sentWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			failure.Refuse(w, s.failureOf(r, err))
			return
		}
		who, err := s.tokens.Whose(ctx, s.sessions.TokenOf(r))
		if err != nil {
			failure.Refuse(w, s.failureOf(r, err))
			return
		}
		leave, err := s.limits.Enter(who.ID, stream, s.options.Clock.Now())
		if err != nil {
			failure.Refuse(w, s.failureOf(r, err))
			return
		}
		defer leave()
		known := &request{Request: r, user: who, rights: grants{s.access.RightsOf(ctx, who)}}
		if !stream {
			known.Request = r.WithContext(ctx)
		}
		next(w, known)
	})
}

// serve answers a request of an endpoint. An answer that was made without knowing all rights is not given.
func (s *server) serve(w http.ResponseWriter, r *request, e endpoint) {
	answer, view, err := s.answer(r, e)
	if err != nil {
		failure.Refuse(w, s.failureOf(r.Request, err))
		return
	}
	view.write(w.Header())
	failure.WriteJSON(w, http.StatusOK, answer)
}

func (s *server) answer(r *request, e endpoint) (any, *viewOf, error) {
	var err error
	if r.params, err = readParams(r.URL.RawQuery, e.params); err != nil {
		return nil, nil, err
	}
	if r.kinds, err = s.readKinds(r.Context()); err != nil {
		return nil, nil, err
	}
	answer, view, err := e.answer(s, r)
	if problem := r.rights.Problem(); problem != nil {
		return nil, nil, problem
	}
	return answer, (*viewOf)(view), err
}

func (s *server) whoami(r *request) (any, *api.View, error) {
	answer := s.welcome(r.user)
	return answer, &answer.View, nil
}

func (s *server) welcome(who *signin.User) *api.Whoami {
	return &api.Whoami{User: who.Username, Groups: who.Groups, View: s.viewOf(nil)}
}
