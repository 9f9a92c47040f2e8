package server

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/guard"
	"github.com/slipway-dev/slipway/internal/web/rights"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

// Store is what is read of the history. A *store.Store is one.
type Store interface {
	Kinds(ctx context.Context) ([]store.KindState, error)
	Changes(ctx context.Context, q store.Query) (store.Page, error)
	Object(ctx context.Context, kind schema.GroupResource, uid types.UID, at time.Time) (store.Past, error)
	State(ctx context.Context, kind schema.GroupResource, uid types.UID) (change.State, error)
	StateNamed(ctx context.Context, kind schema.GroupResource, namespace, name string) (change.State, error)
	StatesOf(ctx context.Context, kind schema.GroupResource) iter.Seq2[change.State, error]
	Rate(ctx context.Context, since time.Time, buckets int) ([]store.Bucket, error)
	Losses(ctx context.Context) ([]store.Loss, error)
	Definitions(ctx context.Context, name string) ([]store.Definition, error)
	Removed(ctx context.Context, namespace string) (time.Time, error)
}

// Coverage says what is seen. A *supervisor.Supervisor is one.
type Coverage interface {
	Coverage() supervisor.Coverage
}

// Subscription tells that something was stored.
type Subscription interface {
	// Next waits until something was stored since it returned last, and returns an error when nothing will be any more, or the
	// context has ended.
	Next(ctx context.Context) error
	// Close ends it.
	Close()
}

// Rules says which rules there are, and what they found. What a user may not see is taken out by the server.
type Rules interface {
	Rules(ctx context.Context) ([]api.Rule, error)
	Alarms(ctx context.Context) ([]Alarm, error)
}

// Alarm is a rule that fires for an object.
type Alarm struct {
	Rule, Severity, Message string
	Kind                    schema.GroupResource
	Namespace, Name         string
	UID                     types.UID
	Since                   time.Time
}

// Options are what a server is made of. What has no default is required.
type Options struct {
	Store    Store
	Coverage Coverage
	// Subscribe begins to listen to what is stored. Nil: streams look every second.
	Subscribe func() Subscription
	// Rules may be nil: then there are none.
	Rules Rules
	// Reports returns what the last changes of a definition break, the oldest first. Nil: nothing is known.
	Reports func(ctx context.Context, name string) ([]recorder.Report, error)
	// HasNoStatus reports whether the definition of a kind gives its objects no status. Nil: no kind is known to be such.
	HasNoStatus func(kind schema.GroupResource) bool
	// Ready returns nil when the monitor can do its work. Nil: it always can.
	Ready func() error

	// TokenReviews and AccessReviews ask the API server who a user is, and what the user may do.
	TokenReviews  authenticationclient.TokenReviewInterface
	AccessReviews authorizationclient.SubjectAccessReviewInterface
	// Namespaces says which namespace has a name now: of one that was made again, nothing from before is shown to who has rights in it.
	Namespaces rights.Namespaces
	// OwnAudienceOnly refuses tokens that the API server accepts, too, so that the monitor never holds one. Then only tokens with
	// the audience api.Audience are left.
	OwnAudienceOnly bool

	// Key is a secret of at least 32 bytes, the same after a restart. Cursors and sessions are sealed with keys that are derived
	// from it.
	Key []byte
	// Hosts are the names under which the server is reached, without a port, besides localhost and its addresses. A request for
	// another name is refused.
	Hosts []string
	// BehindTLS reports whether browsers reach the server through something that ends TLS: cookies are then for HTTPS only.
	BehindTLS bool
	// SessionLife is how long a log-in in a browser lasts. Default 8 hours, at most 24.
	SessionLife time.Duration

	// Rate is how many requests per second a user may send in the long run, and Burst how many at once. Defaults 20 and 60.
	Rate  float64
	Burst int
	// Parallel is how many requests are answered at a time, streams aside: default 32, a fourth of them for one user. Streams is
	// the same for streams: default 100, a tenth for one user.
	Parallel, Streams int

	// Page has the files of the web page: index.html, and what it needs in assets. Nil: there is none.
	Page fs.FS

	// Clock is the time. Default: the real one.
	Clock clock.WithTicker
	// Logger is told of errors. Neither tokens nor contents of objects are logged.
	Logger logr.Logger
}

const (
	// program is what messages call this program.
	program        = "monitor"
	minKey         = 32
	maxSessionLife = 24 * time.Hour
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Store == nil || o.Coverage == nil || o.TokenReviews == nil || o.AccessReviews == nil || o.Namespaces == nil:
		return o, errors.New("the server needs a store, a coverage, token reviews, access reviews and namespaces")
	case len(o.Key) < minKey:
		return o, errors.New("the key of the server has less than 32 bytes")
	case o.SessionLife < 0 || o.SessionLife > maxSessionLife:
		return o, errors.New("a session may last 24 hours at most")
	case o.Rate < 0 || o.Burst < 0 || o.Parallel < 0 || o.Streams < 0:
		return o, errors.New("a limit of the server is negative")
	}
	standard(&o.SessionLife, 8*time.Hour)
	standard(&o.Rate, 20)
	standard(&o.Burst, 60)
	standard(&o.Parallel, 32)
	standard(&o.Streams, 100)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, host := range o.Hosts {
		hosts = append(hosts, strings.ToLower(strings.TrimSuffix(host, ".")))
	}
	o.Hosts = hosts
	return o, nil
}

// signin are the options of who may sign in to this server.
func (o *Options) signin(s *server) *signin.Options {
	return &signin.Options{
		Program: program, Audience: api.Audience, OwnAudienceOnly: o.OwnAudienceOnly, TokenReviews: o.TokenReviews, Key: o.Key,
		BehindTLS: o.BehindTLS, Life: o.SessionLife, WithoutCookie: "use kubectl slipway ui", Clock: o.Clock,
		Welcome: func(w http.ResponseWriter, who *signin.User) { failure.WriteJSON(w, http.StatusOK, s.welcome(who)) },
		Refuse:  func(w http.ResponseWriter, r *http.Request, err error) { failure.Refuse(w, s.failureOf(r, err)) },
	}
}

func (o *Options) rights() *rights.Options {
	return &rights.Options{AccessReviews: o.AccessReviews, Namespaces: o.Namespaces, Clock: o.Clock}
}

func (o *Options) guard() *guard.Options {
	return &guard.Options{
		Program: program, Hosts: o.Hosts, Rate: o.Rate, Burst: o.Burst, Parallel: o.Parallel, Streams: o.Streams, Clock: o.Clock,
	}
}

func standard[T ~int | ~int64 | ~float64](value *T, is T) {
	if *value == 0 {
		*value = is
	}
}
