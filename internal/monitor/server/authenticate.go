package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const (
	// maxToken is the longest token that is looked at, in bytes.
	maxToken = 16 << 10
	// knownFor is how long a user is known by a token, and refusedFor how long a token is refused without asking again.
	knownFor   = 60 * time.Second
	refusedFor = 10 * time.Second
	// knownTokens and refusedTokens bound what is remembered. They are apart, so that tokens that somebody invents do not push
	// out those of users.
	knownTokens   = 2000
	refusedTokens = 2000
	// parallelReviews is how many tokens are reviewed at a time.
	parallelReviews = 8
)

// user is who sends a request.
type user struct {
	authenticationv1.UserInfo
	// id is the same for the same name, UID, groups and extra fields.
	id userID
}

type userID [sha256.Size]byte

// authenticator finds out who has a token. It keeps no token, only hashes with a key that is made anew at each start.
type authenticator struct {
	reviews   authenticationclient.TokenReviewInterface
	audiences [][]string
	key       []byte
	known     *cache.LRUExpireCache
	refused   *cache.LRUExpireCache
	running   chan struct{}
}

func newAuthenticator(o *Options) *authenticator {
	a := &authenticator{
		reviews: o.TokenReviews, key: make([]byte, 32), audiences: [][]string{{api.Audience}},
		known: newCache(knownTokens, o.Clock), refused: newCache(refusedTokens, o.Clock), running: make(chan struct{}, parallelReviews),
	}
	_, _ = rand.Read(a.key) // never fails: the program ends instead
	if !o.OwnAudienceOnly {
		a.audiences = append(a.audiences, nil) // the API server's own
	}
	return a
}

func newCache(size int, clock clock.PassiveClock) *cache.LRUExpireCache {
	return cache.NewLRUExpireCacheWithClock(size, clock)
}

// whose returns whose token that is. A failure is Unauthenticated if the cluster does not accept it, and Unavailable if it could
// not be asked.
func (a *authenticator) whose(ctx context.Context, token string) (*user, error) {
	if token == "" || len(token) > maxToken || !isToken(token) {
		return nil, unauthenticated()
	}
	sum := hmac.New(sha256.New, a.key)
	sum.Write([]byte(token))
	key := userID(sum.Sum(nil))
	if found, ok := a.known.Get(key); ok {
		return found.(*user), nil
	}
	if _, ok := a.refused.Get(key); ok {
		return nil, unauthenticated()
	}
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	who, err := a.review(ctx, token)
	var failure *api.Failure
	if errors.As(err, &failure) && failure.Reason == api.Unauthenticated {
		a.refused.Add(key, struct{}{}, refusedFor)
	}
	if err != nil {
		return nil, err
	}
	a.known.Add(key, who, knownFor)
	return who, nil
}

// review asks the API server: first for tokens that are for the monitor alone.
func (a *authenticator) review(ctx context.Context, token string) (*user, error) {
	for _, audiences := range a.audiences {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			// The error may quote the request, and with it the token.
			return nil, fail(api.Unavailable, "the API server could not be asked who you are")
		}
		status := &answer.Status
		// An authenticator that knows no audiences leaves them out: its token is for the API server.
		fits := len(audiences) == 0 || slices.Contains(status.Audiences, api.Audience)
		if status.Authenticated && status.Error == "" && fits && status.User.Username != "" {
			return newUser(status.User)
		}
	}
	return nil, unauthenticated()
}

func newUser(info authenticationv1.UserInfo) (*user, error) {
	raw, err := json.Marshal(info) // maps are written in the order of their keys
	if err != nil {
		return nil, err
	}
	return &user{UserInfo: info, id: sha256.Sum256(raw)}, nil
}

// isToken tells that a text has the characters of a bearer token only (RFC 6750).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '.' && c != '_' && c != '~' && c != '+' && c != '/' && c != '=' {
			return false
		}
	}
	return true
}
