package server

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const (
	// allowedFor and deniedFor are how long an answer of the API server counts.
	allowedFor = 30 * time.Second
	deniedFor  = 10 * time.Second
	// rememberedAnswers bounds how many are kept.
	rememberedAnswers = 50_000
	// maxQuestions is how many answers one request may need that are not known yet. What is beyond counts as denied, and the
	// answer says that it is incomplete.
	maxQuestions = 1000
	// parallelQuestions is how many questions of one request are asked at a time.
	parallelQuestions = 8
)

// authorizer asks the API server what users may list.
type authorizer struct {
	reviews authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
}

func newAuthorizer(o *Options) *authorizer {
	return &authorizer{reviews: o.AccessReviews, answers: newCache(rememberedAnswers, o.Clock)}
}

// question is whether a user may list a kind in a namespace, or everywhere if the namespace is empty.
type question struct {
	user      userID
	kind      schema.GroupResource
	namespace string
}

// rights are what one user may list, for the time of one request. Any number of goroutines may use it.
//
// There is one rule: a user sees a change, an object or a gap of a kind if the user may list that kind, in the namespace of the
// object, or everywhere. Whoever may list objects reads their content, and whoever lists again and again sees their changes.
type rights struct {
	authorizer *authorizer
	user       *user
	// ctx is of the request: Allow of a query has none of its own.
	ctx context.Context

	mutex sync.Mutex
	asked int
	err   error
	cut   bool
}

func (a *authorizer) of(ctx context.Context, who *user) *rights {
	return &rights{authorizer: a, user: who, ctx: ctx}
}

// everywhere tells whether the user may list a kind in all namespaces.
func (r *rights) everywhere(kind schema.GroupResource) bool { return r.may(kind, "") }

// in tells whether the user may list a kind in a namespace, which is empty for objects that have none.
func (r *rights) in(kind schema.GroupResource, namespace string) bool {
	return r.may(kind, "") || namespace != "" && r.may(kind, namespace)
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
			r.may(kind, "")
			return nil
		})
	}
	_ = group.Wait()
}

func (r *rights) may(kind schema.GroupResource, namespace string) bool {
	q := question{r.user.id, kind, namespace}
	if answer, ok := r.authorizer.answers.Get(q); ok {
		return answer.(bool)
	}
	r.mutex.Lock()
	if r.err != nil || r.asked >= maxQuestions {
		r.cut = true
		r.mutex.Unlock()
		return false
	}
	r.asked++
	r.mutex.Unlock()
	allowed, err := r.authorizer.ask(r.ctx, r.user, q)
	if err != nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.err = err
		return false
	}
	return allowed
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
	allowed := answer.Status.Allowed && !answer.Status.Denied
	life := deniedFor
	if allowed {
		life = allowedFor
	}
	a.answers.Add(q, allowed, life)
	return allowed, nil
}
