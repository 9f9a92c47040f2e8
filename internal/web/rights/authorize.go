// Package rights says what a user may list, as the API server answers, and in which namespaces as they are now.
package rights

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/web/failure"
	"github.com/slipway-dev/slipway/internal/web/signin"
)

const (
	// allowedFor and deniedFor are how long an answer of the API server counts.
	allowedFor = 30 * time.Second
	deniedFor  = 10 * time.Second
	// rememberedAnswers bounds how many are kept.
	rememberedAnswers = 50_000
	// MaxQuestions is how many answers one request may need that are not known yet, and as many namespaces are read for it, and once
	// more after each answer that allows something. What is beyond counts as denied, and the answer says that it is incomplete.
	MaxQuestions = 1000
	// QuestionsAtOnce bounds both for all requests of a user together.
	QuestionsAtOnce = 3 * MaxQuestions
	// QuestionsEachSecond is how many of them are given back each second.
	QuestionsEachSecond = 100
	// pacedUsers is of how many users the pace of questions is known, for pacedFor.
	pacedUsers = 5000
	pacedFor   = 10 * time.Minute
	// maxTenures is how often a question is asked anew because its namespace was made again meanwhile.
	maxTenures = 3
	// parallelQuestions is how many questions of one request are asked at a time.
	parallelQuestions = 8
)

// Options are what rights are read from. Everything is required.
type Options struct {
	// AccessReviews asks the API server what a user may do.
	AccessReviews authorizationclient.SubjectAccessReviewInterface
	// Namespaces says which namespace has a name now: of one that was made again, nothing from before is shown to who has rights in it.
	Namespaces Namespaces
	Clock      clock.PassiveClock
}

// Authorizer asks the API server what users may list.
type Authorizer struct {
	reviews    authorizationclient.SubjectAccessReviewInterface
	answers    *cache.LRUExpireCache
	namespaces *namespaces
	clock      clock.PassiveClock

	mutex sync.Mutex
	// paces has how often may be asked for each user.
	paces *cache.LRUExpireCache
}

// NewAuthorizer returns one that remembers no answer yet.
func NewAuthorizer(o *Options) *Authorizer {
	return &Authorizer{
		reviews: o.AccessReviews, answers: cache.NewLRUExpireCacheWithClock(rememberedAnswers, o.Clock), namespaces: newNamespaces(o),
		clock: o.Clock, paces: cache.NewLRUExpireCacheWithClock(pacedUsers, o.Clock),
	}
}

// mayAsk counts a question or a namespace that is read for a user, and reports whether that is not too often.
func (a *Authorizer) mayAsk(who signin.UserID) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pace, ok := a.paces.Get(who)
	if !ok {
		pace = rate.NewLimiter(QuestionsEachSecond, QuestionsAtOnce)
	}
	a.paces.Add(who, pace, pacedFor)
	return pace.(*rate.Limiter).AllowN(a.clock.Now(), 1)
}

// question is whether a user may list a kind in a namespace, or everywhere if the namespace is empty. With the UID of the namespace, an
// answer ends with the namespace that it is about.
type question struct {
	user      signin.UserID
	kind      schema.GroupResource
	namespace string
	uid       types.UID
}

// Rights are what one user may list, for the time of one request. Any number of goroutines may use it.
//
// There is one rule: a user sees an object, and what is known of it, if the user may list its kind in its namespace, or everywhere.
// Whoever may list objects reads their content, and whoever lists again and again sees their changes. The namespace is the one that
// exists now: who may list in it could not list what was in one of the same name before, so that is for those who may list everywhere.
type Rights struct {
	authorizer *Authorizer
	user       *signin.User
	// ctx is of the request: Allow of a query has none of its own.
	ctx context.Context

	mutex sync.Mutex
	// asked and read are how many questions were asked, and how many namespaces read.
	asked, read int
	err         error
	cut         bool
}

// RightsOf returns the rights of a user, for a request that has this context.
func (a *Authorizer) RightsOf(ctx context.Context, who *signin.User) *Rights {
	return &Rights{authorizer: a, user: who, ctx: ctx}
}

// Everywhere reports whether the user may list a kind in all namespaces.
func (r *Rights) Everywhere(kind schema.GroupResource) bool { return r.may(kind) }

// In reports whether the user may list a kind in a namespace, which is empty for objects that have none. What of it the user sees is
// for Share to say.
func (r *Rights) In(kind schema.GroupResource, namespace string) bool {
	return r.Share(kind, namespace) != Share{}
}

// Share tells what the user may see of a kind in a namespace, which is empty for objects that have none.
func (r *Rights) Share(kind schema.GroupResource, namespace string) Share {
	if r.Everywhere(kind) {
		return Share{All: true}
	}
	if namespace == "" {
		return Share{}
	}
	tenure := r.tenure(namespace, false)
	for range maxTenures {
		if tenure == nil {
			return Share{}
		}
		q := question{r.user.ID, kind, namespace, tenure.UID}
		if answer, ok := r.authorizer.answers.Get(q); ok {
			if answer.(bool) {
				return Share{Of: tenure}
			}
			return Share{}
		}
		allowed, known := r.ask(q)
		if !allowed {
			if known {
				r.authorizer.answers.Add(q, false, deniedFor)
			}
			return Share{}
		}
		// The answer was about this namespace if it was there before and is there afterwards.
		before := tenure
		if tenure = r.tenure(namespace, true); tenure != nil && tenure.UID == before.UID {
			r.authorizer.answers.Add(q, true, allowedFor)
		}
	}
	return Share{}
}

// tenure returns the namespace that has a name now, nil if there is none, or that is not known.
func (r *Rights) tenure(name string, fresh bool) *Tenure {
	if r.Problem() != nil {
		return nil
	}
	if !fresh {
		if found, ok := r.authorizer.namespaces.remembered(name); ok {
			return found
		}
	}
	if !r.spend(&r.read, 2*MaxQuestions) {
		return nil
	}
	found, err := r.authorizer.namespaces.get(r.ctx, name)
	if err != nil {
		r.fail(err)
		return nil
	}
	return found
}

// spend counts something that the API server is asked, and reports whether it may be asked.
func (r *Rights) spend(count *int, most int) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.err != nil || *count >= most || !r.authorizer.mayAsk(r.user.ID) {
		r.cut = true
		return false
	}
	*count++
	return true
}

func (r *Rights) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.err = err
}

// Problem returns why an answer that was made with these rights may not be given: a question was not answered.
func (r *Rights) Problem() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.err
}

// Incomplete reports whether some questions were not asked, because there were too many.
func (r *Rights) Incomplete() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.cut
}

// Prepare asks about kinds in all namespaces, several at a time.
func (r *Rights) Prepare(kinds []schema.GroupResource) {
	group := errgroup.Group{}
	group.SetLimit(parallelQuestions)
	for _, kind := range kinds {
		group.Go(func() error {
			r.may(kind)
			return nil
		})
	}
	_ = group.Wait()
}

func (r *Rights) may(kind schema.GroupResource) bool {
	q := question{user: r.user.ID, kind: kind}
	if answer, ok := r.authorizer.answers.Get(q); ok {
		return answer.(bool)
	}
	allowed, known := r.ask(q)
	if known {
		life := deniedFor
		if allowed {
			life = allowedFor
		}
		r.authorizer.answers.Add(q, allowed, life)
	}
	return allowed
}

// ask asks the API server, and reports whether it has answered. A request may ask so often only.
func (r *Rights) ask(q question) (allowed, known bool) {
	if !r.spend(&r.asked, MaxQuestions) {
		return false, false
	}
	allowed, err := r.authorizer.ask(r.ctx, r.user, q)
	if err != nil {
		r.fail(err)
		return false, false
	}
	return allowed, true
}

func (a *Authorizer) ask(ctx context.Context, who *signin.User, q question) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
	for key, values := range who.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: q.kind.Group, Version: "*", Resource: q.kind.Resource, Namespace: q.namespace,
		},
	}}
	answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return false, cause
		}
		return false, failure.New(failure.Unavailable, "the API server could not be asked what you may see")
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}
