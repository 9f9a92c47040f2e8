package server

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

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

const (
	// allowedFor and deniedFor are how long an answer of the API server counts.
	allowedFor = 30 * time.Second
	deniedFor  = 10 * time.Second
	// rememberedAnswers bounds how many are kept.
	rememberedAnswers = 50_000
	// maxQuestions is how many answers one request may need that are not known yet, and as many namespaces are read for it, and once
	// more after each answer that allows something. What is beyond counts as denied, and the answer says that it is incomplete.
	maxQuestions = 1000
	// questionsAtOnce and questionsEachSecond bound both for all requests of a user together.
	questionsAtOnce     = 3 * maxQuestions
	questionsEachSecond = 100
	// maxTenures is how often a question is asked anew because its namespace was made again meanwhile.
	maxTenures = 3
	// parallelQuestions is how many questions of one request are asked at a time.
	parallelQuestions = 8
)

// authorizer asks the API server what users may list.
type authorizer struct {
	reviews    authorizationclient.SubjectAccessReviewInterface
	answers    *cache.LRUExpireCache
	namespaces *namespaces
	clock      clock.PassiveClock

	mutex sync.Mutex
	// paces has how often may be asked for each user.
	paces *cache.LRUExpireCache
}

func newAuthorizer(o *Options) *authorizer {
	return &authorizer{
		reviews: o.AccessReviews, answers: newCache(rememberedAnswers, o.Clock), namespaces: newNamespaces(o), clock: o.Clock,
		paces: newCache(rememberedUsers, o.Clock),
	}
}

// mayAsk counts a question or a namespace that is read for a user, and tells whether that is not too often.
func (a *authorizer) mayAsk(who userID) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pace, ok := a.paces.Get(who)
	if !ok {
		pace = rate.NewLimiter(questionsEachSecond, questionsAtOnce)
	}
	a.paces.Add(who, pace, rememberedFor)
	return pace.(*rate.Limiter).AllowN(a.clock.Now(), 1)
}

// question is whether a user may list a kind in a namespace, or everywhere if the namespace is empty. With the UID of the namespace, an
// answer ends with the namespace that it is about.
type question struct {
	user      userID
	kind      schema.GroupResource
	namespace string
	uid       types.UID
}

// rights are what one user may list, for the time of one request. Any number of goroutines may use it.
//
// There is one rule: a user sees a change, an object or a gap of a kind if the user may list that kind, in the namespace of the
// object, or everywhere. Whoever may list objects reads their content, and whoever lists again and again sees their changes. The
// namespace is the one that exists now: who may list in it could not list what was in one of the same name before, so that is for those
// who may list everywhere.
type rights struct {
	authorizer *authorizer
	user       *user
	// ctx is of the request: Allow of a query has none of its own.
	ctx context.Context

	mutex sync.Mutex
	// asked and read are how many questions were asked, and how many namespaces read.
	asked, read int
	err         error
	cut         bool
}

func (a *authorizer) of(ctx context.Context, who *user) *rights {
	return &rights{authorizer: a, user: who, ctx: ctx}
}

// everywhere tells whether the user may list a kind in all namespaces.
func (r *rights) everywhere(kind schema.GroupResource) bool { return r.may(kind) }

// in tells whether the user may list a kind in a namespace, which is empty for objects that have none. What of it the user sees is
// for share to say.
func (r *rights) in(kind schema.GroupResource, namespace string) bool {
	return r.share(kind, namespace) != store.Share{}
}

// share tells what the user may see of a kind in a namespace, which is empty for objects that have none.
func (r *rights) share(kind schema.GroupResource, namespace string) store.Share {
	if r.everywhere(kind) {
		return store.Share{All: true}
	}
	if namespace == "" {
		return store.Share{}
	}
	tenure := r.tenure(namespace, false)
	for range maxTenures {
		if tenure == nil {
			return store.Share{}
		}
		q := question{r.user.id, kind, namespace, tenure.UID}
		if answer, ok := r.authorizer.answers.Get(q); ok {
			if answer.(bool) {
				return store.Share{Of: tenure}
			}
			return store.Share{}
		}
		allowed, known := r.ask(q)
		if !allowed {
			if known {
				r.authorizer.answers.Add(q, false, deniedFor)
			}
			return store.Share{}
		}
		// The answer was about this namespace if it was there before and is there afterwards.
		before := tenure
		if tenure = r.tenure(namespace, true); tenure != nil && tenure.UID == before.UID {
			r.authorizer.answers.Add(q, true, allowedFor)
		}
	}
	return store.Share{}
}

// sees tells whether the user may see an object of a kind in a namespace.
func (r *rights) sees(kind schema.GroupResource, namespace string, o change.Origin) bool {
	share := r.share(kind, namespace)
	return share.All || share.Of.Has(o)
}

// tenure returns the namespace that has a name now, nil if there is none, or that is not known.
func (r *rights) tenure(name string, fresh bool) *change.Tenure {
	if r.problem() != nil {
		return nil
	}
	if !fresh {
		if found, ok := r.authorizer.namespaces.remembered(name); ok {
			return found
		}
	}
	if !r.spend(&r.read, 2*maxQuestions) {
		return nil
	}
	found, err := r.authorizer.namespaces.get(r.ctx, name)
	if err != nil {
		r.fail(err)
		return nil
	}
	return found
}

// spend counts something that the API server is asked, and tells whether it may be asked.
func (r *rights) spend(count *int, most int) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.err != nil || *count >= most || !r.authorizer.mayAsk(r.user.id) {
		r.cut = true
		return false
	}
	*count++
	return true
}

func (r *rights) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.err = err
}

// problem returns why an answer that was made with these rights may not be given: a question was not answered.
func (r *rights) problem() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.err
}

// incomplete tells that some questions were not asked, because there were too many.
func (r *rights) incomplete() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.cut
}

// prepare asks about kinds in all namespaces, several at a time.
func (r *rights) prepare(kinds []schema.GroupResource) {
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

func (r *rights) may(kind schema.GroupResource) bool {
	q := question{user: r.user.id, kind: kind}
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

// ask asks the API server, and tells whether it has answered. A request may ask so often only.
func (r *rights) ask(q question) (allowed, known bool) {
	if !r.spend(&r.asked, maxQuestions) {
		return false, false
	}
	allowed, err := r.authorizer.ask(r.ctx, r.user, q)
	if err != nil {
		r.fail(err)
		return false, false
	}
	return allowed, true
}

func (a *authorizer) ask(ctx context.Context, who *user, q question) (bool, error) {
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
		return false, fail(api.Unavailable, "the API server could not be asked what you may see")
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}
