package proxy

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// authenticate finds out who the client is, or answers that it has to prove it.
func (e *exchange) authenticate() bool {
	auth := e.route.Auth
	switch {
	case auth == nil:
		return true
	case auth.APIKey != nil:
		return e.checkAPIKey(auth.APIKey)
	case auth.Basic != nil:
		return e.checkPassword(auth.Basic)
	}
	return e.checkToken(auth.JWT)
}

// checkAPIKey looks for a key in the header, then in the query. The backend sees neither.
func (e *exchange) checkAPIKey(auth *table.APIKey) bool {
	key := ""
	if auth.Header != "" {
		key = e.r.Header.Get(auth.Header)
	}
	if auth.QueryParam != "" {
		value, rest := cutParam(e.query, auth.QueryParam)
		e.query = rest
		if key == "" {
			key = value
		}
	}
	client, ok := "", false
	if key != "" {
		client, ok = auth.Client(key)
	}
	if !ok {
		return e.refuse(http.StatusUnauthorized, "unauthenticated")
	}
	e.identity = client
	return true
}

// cutParam takes a parameter out of a query, and returns its first value and the rest.
func cutParam(query, name string) (value, rest string) {
	var kept []string
	found := false
	for part := range strings.SplitSeq(query, "&") {
		key, text, _ := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(key); err != nil || decoded != name {
			kept = append(kept, part)
			continue
		}
		if decoded, err := url.QueryUnescape(text); err == nil && !found {
			value, found = decoded, true
		}
	}
	return value, strings.Join(kept, "&")
}

func (e *exchange) checkPassword(auth *table.Basic) bool {
	user, password, ok := e.r.BasicAuth()
	if ok && e.handler.passwords.check(e.r.Context(), auth.Users, user, password) {
		e.identity = user
		return true
	}
	realm := auth.Realm
	if realm == "" {
		realm = e.handler.options.Realm
	}
	e.w.Header()["Www-Authenticate"] = []string{"Basic realm=" + strconv.Quote(realm) + `, charset="UTF-8"`}
	return e.refuse(http.StatusUnauthorized, "unauthenticated")
}

// addIdentity tells the backend who the client is.
func (e *exchange) addIdentity() {
	auth := e.route.Auth
	if auth == nil {
		return
	}
	header := ""
	switch {
	case auth.JWT != nil:
		e.addClaims(auth.JWT)
	case auth.APIKey != nil:
		header = auth.APIKey.ClientHeader
	case auth.Basic != nil:
		header = auth.Basic.UserHeader
	}
	if header != "" {
		e.fields = append(e.fields, upstream.Field{Name: header, Value: e.identity})
	}
}

// maxPasswords bounds the passwords that are known to be right.
const maxPasswords = 4096

// passwords checks passwords. A hash is slow to compare on purpose, so what was right is
// remembered, as a hash of password and hash, which is worth nothing without both.
type passwords struct {
	slots chan struct{} // so that guessing does not take every core

	mu    sync.Mutex
	right map[[sha256.Size]byte]struct{}
}

func (p *passwords) init() {
	p.slots = make(chan struct{}, 1)
	p.right = map[[sha256.Size]byte]struct{}{}
}

// check reports whether a password is the user's. For a user that there is not it takes
// the time that it takes for another one, so that the answer does not tell them apart.
func (p *passwords) check(ctx context.Context, users map[string][][]byte, user, password string) bool {
	hashes, known := users[user]
	for _, hash := range hashes {
		if p.known(fingerprint(hash, password)) {
			return true
		}
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-p.slots }()
	if !known {
		hashes = anybodys(users)
	}
	for _, hash := range hashes {
		if bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && known {
			p.remember(fingerprint(hash, password))
			return true
		}
	}
	return false
}

// anybodys returns the hashes of some user.
func anybodys(users map[string][][]byte) [][]byte {
	for _, hashes := range users {
		return hashes
	}
	return nil
}

func fingerprint(hash []byte, password string) [sha256.Size]byte {
	text := make([]byte, 0, len(hash)+1+len(password))
	text = append(append(append(text, hash...), 0), password...)
	return sha256.Sum256(text)
}

func (p *passwords) known(print [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.right[print]
	return ok
}

func (p *passwords) remember(print [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for old := range p.right {
		if len(p.right) < maxPasswords {
			break
		}
		delete(p.right, old)
	}
	p.right[print] = struct{}{}
}
