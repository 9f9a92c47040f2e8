package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	// MaxToken is the longest token that is looked at, in bytes.
	MaxToken = 16 << 10
	// knownFor is how long a user is known by a token.
	knownFor = 60 * time.Second
	// RefusedFor is how long a token is refused without asking again.
	RefusedFor = 10 * time.Second
	// knownTokens and refusedTokens bound what is remembered. They are apart, so that tokens that somebody invents do not push
	// out those of users.
	knownTokens   = 2000
	refusedTokens = 2000
	// parallelReviews is how many tokens are reviewed at a time.
	parallelReviews = 8
)

// User is who sends a request.
type User struct {
	authenticationv1.UserInfo
	// ID is the same for the same name, UID, groups and extra fields.
	ID UserID
}

// UserID tells users apart.
type UserID [sha256.Size]byte

// Authenticator finds out who has a token. It keeps no token, only hashes with a key that is made anew at each start.
type Authenticator struct {
	reviews   authenticationclient.TokenReviewInterface
	audience  string
	audiences [][]string
	key       []byte
	known     *cache.LRUExpireCache
	refused   *cache.LRUExpireCache
	running   chan struct{}
}

// NewAuthenticator returns one that remembers nobody yet.
func NewAuthenticator(o *Options) *Authenticator {
	a := &Authenticator{
		reviews: o.TokenReviews, key: make([]byte, 32), audience: o.Audience, audiences: [][]string{{o.Audience}},
		known:   cache.NewLRUExpireCacheWithClock(knownTokens, o.Clock),
		refused: cache.NewLRUExpireCacheWithClock(refusedTokens, o.Clock),
		running: make(chan struct{}, parallelReviews),
	}
	_, _ = rand.Read(a.key) // never fails: the program ends instead
	if !o.OwnAudienceOnly {
		a.audiences = append(a.audiences, nil) // the API server's own
	}
	return a
}

// Whose returns whose token that is. A failure is Unauthenticated if the cluster does not accept it, and Unavailable if it could
// not be asked.
func (a *Authenticator) Whose(ctx context.Context, token string) (*User, error) {
	if token == "" || len(token) > MaxToken || !isToken(token) {
		return nil, a.Unauthenticated()
	}
	sum := hmac.New(sha256.New, a.key)
	sum.Write([]byte(token))
	key := UserID(sum.Sum(nil))
	if found, ok := a.known.Get(key); ok {
		return found.(*User), nil
	}
	if _, ok := a.refused.Get(key); ok {
		return nil, a.Unauthenticated()
	}
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	who, err := a.review(ctx, token)
	var refused *failure.Failure
	if errors.As(err, &refused) && refused.Reason == failure.Unauthenticated {
		a.refused.Add(key, struct{}{}, RefusedFor)
	}
	if err != nil {
		return nil, err
	}
	a.known.Add(key, who, knownFor)
	return who, nil
}

// Unauthenticated is the one answer for a token that is missing, wrong or expired.
func (a *Authenticator) Unauthenticated() *failure.Failure {
	f := failure.New(failure.Unauthenticated, "a bearer token that the cluster accepts is needed")
	f.Challenge = fmt.Sprintf("Bearer realm=%q", a.audience)
	return f
}

// review asks the API server: first for tokens that are for this program alone.
func (a *Authenticator) review(ctx context.Context, token string) (*User, error) {
	for _, audiences := range a.audiences {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			// The error may quote the request, and with it the token.
			return nil, failure.New(failure.Unavailable, "the API server could not be asked who you are")
		}
		status := &answer.Status
		// An authenticator that knows no audiences leaves them out: its token is for the API server.
		fits := len(audiences) == 0 || slices.Contains(status.Audiences, a.audience)
		if status.Authenticated && status.Error == "" && fits && status.User.Username != "" {
			return newUser(status.User)
		}
	}
	return nil, a.Unauthenticated()
}

func newUser(info authenticationv1.UserInfo) (*User, error) {
	raw, err := json.Marshal(info) // maps are written in the order of their keys
	if err != nil {
		return nil, err
	}
	return &User{UserInfo: info, ID: sha256.Sum256(raw)}, nil
}

// isToken reports whether a text has the characters of a bearer token only (RFC 6750).
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
