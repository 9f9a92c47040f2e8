package signin

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	// maxCookie is how long a cookie may be: browsers drop longer ones without a word.
	maxCookie = 4000
	// maxLogin is how many bytes a log-in may have.
	maxLogin = MaxToken + 1<<10
)

// Options say who may sign in, and how. All but the flags and WithoutCookie are required.
type Options struct {
	// Program is what messages call the program, such as monitor.
	Program string
	// Audience is the audience of tokens that are for the program alone. It is the realm of its challenges and the name of its
	// cookie, too.
	Audience string
	// OwnAudienceOnly refuses tokens that the API server accepts, too.
	OwnAudienceOnly bool
	// TokenReviews asks the API server who a user is.
	TokenReviews authenticationclient.TokenReviewInterface

	// Key is a secret of at least 32 bytes. The key of sessions is derived from it.
	Key []byte
	// BehindTLS reports whether browsers reach the program through something that ends TLS: cookies are then for HTTPS only.
	BehindTLS bool
	// Life is how long a log-in in a browser lasts.
	Life time.Duration
	// WithoutCookie says what to use if a token is too long for a cookie.
	WithoutCookie string
	// Welcome answers a log-in, and Refuse a request that failed.
	Welcome func(w http.ResponseWriter, who *User)
	Refuse  func(w http.ResponseWriter, r *http.Request, err error)

	Clock clock.PassiveClock
}

// session is what the cookie of a browser holds, sealed. The server keeps nothing of it.
type session struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// Sessions lets users of browsers in and out.
type Sessions struct {
	options *Options
	tokens  *Authenticator
	sealer  *Sealer
}

// NewSessions returns the sessions of users that an authenticator knows.
func NewSessions(o *Options, tokens *Authenticator) (*Sessions, error) {
	sealer, err := NewSealer(o.Key, o.Audience+" sessions", false)
	if err != nil {
		return nil, err
	}
	return &Sessions{options: o, tokens: tokens, sealer: sealer}, nil
}

// TokenOf returns the token of a request: that of its header, or else that of its cookie. It may be empty.
func (s *Sessions) TokenOf(r *http.Request) string {
	if header := r.Header.Values("Authorization"); len(header) > 0 {
		kind, token, _ := strings.Cut(header[0], " ")
		if len(header) > 1 || !strings.EqualFold(kind, "Bearer") {
			return ""
		}
		return strings.TrimSpace(token)
	}
	cookie, err := r.Cookie(s.cookieName(r))
	if err != nil || len(cookie.Value) > maxCookie {
		return ""
	}
	raw, err := s.sealer.Open(cookie.Value)
	if err != nil {
		return ""
	}
	held := session{}
	if json.Unmarshal(raw, &held) != nil || !s.options.Clock.Now().Before(held.Expires) {
		return ""
	}
	return held.Token
}

// cookieName has a prefix where browsers hold what it promises: set by this very host, over HTTPS, for all paths.
func (s *Sessions) cookieName(r *http.Request) string {
	if s.isSecure(r) {
		return "__Host-" + s.options.Audience
	}
	return s.options.Audience
}

func (s *Sessions) isSecure(r *http.Request) bool { return r.TLS != nil || s.options.BehindTLS }

// Login turns a token into a cookie that scripts cannot read.
func (s *Sessions) Login(w http.ResponseWriter, r *http.Request) {
	if !s.ownPage(w, r) {
		return
	}
	var given struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&given); err != nil {
		failure.Refuse(w, failure.New(failure.BadRequest, "a log-in is JSON with a token"))
		return
	}
	who, err := s.tokens.Whose(r.Context(), given.Token)
	if err != nil {
		s.options.Refuse(w, r, err)
		return
	}
	held := session{given.Token, s.options.Clock.Now().Add(s.options.Life)}
	raw, err := json.Marshal(held)
	if err != nil {
		s.options.Refuse(w, r, err)
		return
	}
	sealed := s.sealer.Seal(raw)
	if len(sealed) > maxCookie {
		failure.Refuse(w, failure.New(failure.TooLarge, "the token is too long for a cookie: %s", s.options.WithoutCookie))
		return
	}
	http.SetCookie(w, s.cookie(r, sealed, s.options.Life))
	s.options.Welcome(w, who)
}

// Logout takes the cookie away.
func (s *Sessions) Logout(w http.ResponseWriter, r *http.Request) {
	if !s.ownPage(w, r) {
		return
	}
	http.SetCookie(w, s.cookie(r, "", -time.Second))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Sessions) cookie(r *http.Request, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: s.isSecure(r),
		SameSite: http.SameSiteStrictMode,
	}
}

// ownPage lets through what the program's own page posts: the only requests that change anything, which is a cookie.
func (s *Sessions) ownPage(w http.ResponseWriter, r *http.Request) bool {
	scheme := "http://"
	if s.isSecure(r) {
		scheme = "https://"
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		f := failure.New(failure.NotAllowed, "a log-in is posted")
		f.Code = http.StatusMethodNotAllowed
		failure.Refuse(w, f)
	case r.Header.Get("Origin") != scheme+r.Host, site != "" && site != "same-origin", strings.TrimSpace(media) != "application/json":
		failure.Refuse(w, failure.New(failure.NotAllowed, "only the page of the %s may log in and out", s.options.Program))
	default:
		return true
	}
	return false
}
