package oidc

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// remembered is how long a result holds for requests that still carry the cookie from before. A provider may take each
	// refresh token only once.
	remembered = time.Minute
	// maxRemembered and maxRememberedBytes bound the results of one client.
	maxRemembered      = 1000
	maxRememberedBytes = 8 << 20
)

// renewal is a request to a provider. The session and its sealed text, or err, are set once done is closed.
type renewal struct {
	done    chan struct{}
	until   time.Time   // when the result is forgotten; zero while it runs
	timer   *time.Timer // drops the result then, also if nobody asks any more
	session *Session
	sealed  string
	err     error
}

// Fresh returns a session with tokens that have not expired. cookies are set if it was renewed. They are the same for every
// request that was waiting: a browser that got pieces of different texts could not put them together. An error tells that the
// session must not be used now: a *Failure of kind Refused or BadToken that it is over.
func (c *Client) Fresh(ctx context.Context, source Source, client *http.Client, b *Browser, s *Session) (fresh *Session, cookies []*http.Cookie, err error) {
	if !s.expired(b.Now) {
		return s, nil, nil
	}
	if s.RefreshToken == "" {
		return nil, nil, &Failure{Kind: Refused}
	}
	renewed := c.renewalOf(ctx, source, client, b, s)
	if renewed == nil {
		return nil, nil, &Failure{Kind: Busy}
	}
	select {
	case <-renewed.done:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if renewed.err != nil {
		return nil, nil, renewed.err
	}
	cookies, err = c.cookies(b, renewed.session, renewed.sealed)
	return renewed.session, cookies, err
}

// renewalOf returns the renewal of a session that runs, or has just ended. If there is none, it begins one, which goes on when
// the browser leaves: the provider may have given out the new tokens already. It returns nil if there are too many.
func (c *Client) renewalOf(ctx context.Context, source Source, client *http.Client, b *Browser, s *Session) *renewal {
	key := sha256.Sum256([]byte(strconv.FormatInt(s.Expires, 10) + "\x00" + s.RefreshToken))
	share := c.share
	share.mu.Lock()
	defer share.mu.Unlock()
	if known := share.renewed[key]; known != nil && (known.until.IsZero() || b.Now.Before(known.until)) {
		return known
	}
	if !take(share.renewing) {
		return nil
	}
	share.forget(b.Now)
	n := &renewal{done: make(chan struct{})}
	share.renewed[key] = n
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTimeout)
	of := *b
	go func() {
		defer cancel()
		n.session, n.sealed, n.err = c.renewAndSeal(ctx, source, client, &of, s)
		<-share.renewing
		share.end(key, n, of.Now)
	}()
	return n
}

// renewAndSeal returns a session with its sealed text, or an error alone: a failure is remembered too, and must take no room.
func (c *Client) renewAndSeal(ctx context.Context, source Source, client *http.Client, b *Browser, s *Session) (renewed *Session, text string, err error) {
	defer c.share.panics.CatchError("renew a session", &err)
	next, err := c.renew(ctx, source, client, b, s)
	if err != nil {
		return nil, "", err
	}
	sealed, err := c.seal(next)
	if err != nil {
		return nil, "", err
	}
	next.IDToken, next.AccessToken, next.RefreshToken = strings.Clone(next.IDToken), strings.Clone(next.AccessToken), strings.Clone(next.RefreshToken)
	return next, sealed, nil // of a form, tokens are parts of the whole answer, which is not kept
}

// end notes the result of a renewal. One that failed because of the provider is tried again after a second.
func (s *share) end(key [sha256.Size]byte, n *renewal, now time.Time) {
	kind, wait := OK, remembered
	if n.err != nil {
		kind = KindOf(n.err)
		if kind != Refused && kind != BadToken && kind != TooLarge {
			wait = time.Second
		}
	}
	until := now.Add(wait)
	if n.err == nil && time.Unix(n.session.Expires, 0).Before(until) {
		until = time.Unix(n.session.Expires, 0)
	}
	s.mu.Lock()
	n.until = until
	n.timer = time.AfterFunc(until.Sub(now), func() { s.over(key, n) })
	s.bytes += n.size()
	s.makeRoom(maxRemembered)
	s.mu.Unlock()
	s.counted(kind)
	close(n.done)
}

// size is about how many bytes a result takes.
func (n *renewal) size() int {
	if n.session == nil {
		return 0
	}
	return len(n.sealed) + n.session.size()
}

// over drops a result whose time is over, unless it made room before.
func (s *share) over(key [sha256.Size]byte, n *renewal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewed[key] == n {
		s.drop(key)
	}
}

// clear drops all results. Renewals that run stay, and those who wait for a result have it.
func (s *share) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, known := range s.renewed {
		if !known.until.IsZero() {
			s.drop(key)
		}
	}
}

// forget drops the results that no longer hold, and makes room for one more.
func (s *share) forget(now time.Time) {
	for key, known := range s.renewed {
		if !known.until.IsZero() && !now.Before(known.until) {
			s.drop(key)
		}
	}
	s.makeRoom(maxRemembered - 1)
}

// makeRoom drops the oldest results while there are too many, or too large ones. Renewals that run stay. There are never more of
// them than places.
func (s *share) makeRoom(most int) {
	for len(s.renewed) > most || s.bytes > maxRememberedBytes {
		s.drop(s.oldest())
	}
}

// oldest returns the result that has held longest.
func (s *share) oldest() (oldest [sha256.Size]byte) {
	var first time.Time
	for key, known := range s.renewed {
		if !known.until.IsZero() && (first.IsZero() || known.until.Before(first)) {
			oldest, first = key, known.until
		}
	}
	return oldest
}

func (s *share) drop(key [sha256.Size]byte) {
	s.renewed[key].timer.Stop() // it holds the result
	s.bytes -= s.renewed[key].size()
	delete(s.renewed, key)
}
