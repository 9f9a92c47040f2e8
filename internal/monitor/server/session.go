package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const (
	// maxCookie is how long a cookie may be: browsers drop longer ones without a word.
	maxCookie = 4000
	// maxLogin is how many bytes a log-in may have.
	maxLogin   = maxToken + 1<<10
	cookieName = "slipway-monitor"
)

// session is what the cookie of a browser holds, sealed. The server keeps nothing of it.
type session struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// tokenOf returns the token of a request: that of its header, or else that of its cookie. It may be empty.
func (s *server) tokenOf(r *http.Request) string {
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
	raw, err := s.sessions.open(cookie.Value)
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
func (s *server) cookieName(r *http.Request) string {
	if s.isSecure(r) {
		return "__Host-" + cookieName
	}
	return cookieName
}

func (s *server) isSecure(r *http.Request) bool { return r.TLS != nil || s.options.BehindTLS }

// login turns a token into a cookie that scripts cannot read.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	if !s.ownPage(w, r) {
		return
	}
	var given struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&given); err != nil {
		refuse(w, fail(api.BadRequest, "a log-in is JSON with a token"))
		return
	}
	who, err := s.tokens.whose(r.Context(), given.Token)
	if err != nil {
		refuse(w, s.failureOf(r, err))
		return
	}
	held := session{given.Token, s.options.Clock.Now().Add(s.options.SessionLife)}
	raw, err := json.Marshal(held)
	if err != nil {
		refuse(w, s.failureOf(r, err))
		return
	}
	sealed := s.sessions.seal(raw)
	if len(sealed) > maxCookie {
		refuse(w, fail(api.TooLarge, "the token is too long for a cookie: use kubectl slipway ui"))
		return
	}
	http.SetCookie(w, s.cookie(r, sealed, s.options.SessionLife))
	writeJSON(w, http.StatusOK, &api.Whoami{User: who.Username, Groups: who.Groups, View: s.viewOf(nil)})
}

// logout takes the cookie away.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.ownPage(w, r) {
		return
	}
	http.SetCookie(w, s.cookie(r, "", -time.Second))
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) cookie(r *http.Request, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: s.isSecure(r),
		SameSite: http.SameSiteStrictMode,
	}
}

// ownPage lets through what the monitor's own page posts: the only requests that change anything, which is a cookie.
func (s *server) ownPage(w http.ResponseWriter, r *http.Request) bool {
	scheme := "http://"
	if s.isSecure(r) {
		scheme = "https://"
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		f := fail(api.NotAllowed, "a log-in is posted")
		f.Code = http.StatusMethodNotAllowed
		refuse(w, f)
	case r.Header.Get("Origin") != scheme+r.Host, site != "" && site != "same-origin", strings.TrimSpace(media) != "application/json":
		refuse(w, fail(api.NotAllowed, "only the page of the monitor may log in and out"))
	default:
		return true
	}
	return false
}
