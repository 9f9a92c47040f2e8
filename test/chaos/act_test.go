//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// requestTimeout bounds one request: one that waits for a dead etcd would wait for a
// minute.
const requestTimeout = 5 * time.Second

// insist tries until it succeeds: what a user does whose request fails. A request may
// have been carried out though it failed, so try must be one that can be repeated.
func insist(ctx context.Context, what string, try func(context.Context) error) error {
	err := livecluster.Eventually(ctx, patience, func() error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return try(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// carryOut does what the user does, and returns when the API server has acknowledged it.
func (r *runner) carryOut(ctx context.Context, c change) error {
	what := fmt.Sprintf("%s %s", c.want.name, c.operation)
	var err error
	switch c.operation {
	case create:
		if err = r.writeGreeting(ctx, what, &c.want); err == nil {
			err = insistOnCreation(ctx, what, func() client.Object { return c.want.webApp(r.namespace) })
		}
	case remove:
		err = insistOnDeletion(ctx, what, c.want.webApp(r.namespace))
	case changeGreeting:
		err = r.writeGreeting(ctx, what, &c.want)
	case changeUnused:
		_, err = r.writeSecret(ctx, what, &c.want)
	default:
		err = insist(ctx, what, func(ctx context.Context) error {
			live := &slipwayv1alpha1.WebApp{}
			if err := cluster.Get(ctx, client.ObjectKeyFromObject(c.want.webApp(r.namespace)), live); err != nil {
				return err
			}
			live.Spec = c.want.spec()
			return cluster.Update(ctx, live)
		})
	}
	if err == nil {
		r.note("acknowledged: %s", what)
	}
	return err
}

// insistOnCreation creates an object that does not exist. That it exists counts as an
// answer to an earlier try of which we got none.
func insistOnCreation(ctx context.Context, what string, object func() client.Object) error {
	tried := false
	return insist(ctx, what, func(ctx context.Context) error {
		err := cluster.Create(ctx, object())
		if tried && apierrors.IsAlreadyExists(err) {
			return nil
		}
		tried = true
		return err
	})
}

// insistOnDeletion deletes an object that exists.
func insistOnDeletion(ctx context.Context, what string, object client.Object) error {
	tried := false
	return insist(ctx, what, func(ctx context.Context) error {
		err := cluster.Delete(ctx, object)
		if tried && apierrors.IsNotFound(err) {
			return nil
		}
		tried = true
		return err
	})
}

// writeSecret writes the application's Secret, which outlives it, and returns its version.
func (r *runner) writeSecret(ctx context.Context, what string, a *app) (version int64, err error) {
	live := &corev1.Secret{}
	err = insist(ctx, what, func(ctx context.Context) error {
		want := a.secret(r.namespace)
		err := cluster.Get(ctx, client.ObjectKeyFromObject(want), live)
		if apierrors.IsNotFound(err) {
			live = want
			return cluster.Create(ctx, live)
		}
		if err != nil {
			return err
		}
		// Where an earlier try has done it, the version stays the one of that.
		live.StringData = want.StringData
		return cluster.Update(ctx, live)
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(live.ResourceVersion, 10, 64)
}

// writeGreeting writes the key of the Secret that pods use, and remembers since which
// version it is there.
func (r *runner) writeGreeting(ctx context.Context, what string, a *app) error {
	version, err := r.writeSecret(ctx, what, a)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.greetings[a.name] = version
	return err
}

// strike kills, and returns when it did.
func (r *runner) strike(ctx context.Context, k kill) (time.Time, error) {
	if k.victim == leader || k.victim == standby {
		return r.strikeOperator(ctx, k)
	}
	var at time.Time
	err := livecluster.Eventually(ctx, patience, func() error {
		at = time.Now()
		return cluster.KillProgram(string(k.victim))
	})
	if err == nil {
		r.note("killed: %s", k.victim)
		r.report.killed(string(k.victim))
	}
	return at, err
}

// strikeOperator kills the operator's process in one of its pods. It returns no time when
// there was none to kill: both may still be starting.
//
// The kubelet starts a container again at once when it ends for the first time, and lets
// it wait 10 s, 20 s and so on up to 5 minutes later on. After a few rounds both pods
// would be waiting all the time and there would be nothing to kill. So a container that
// has been started again already goes together with its pod, as when its node dies.
func (r *runner) strikeOperator(ctx context.Context, k kill) (time.Time, error) {
	var pod *corev1.Pod
	var at time.Time
	err := livecluster.Eventually(ctx, requestTimeout, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		if pod, err = findOperator(ctx, k.victim); err != nil {
			return err
		}
		at = time.Now()
		return cluster.KillOperator(pod)
	})
	if err != nil {
		r.note("not killed: %s: %v", k.victim, err)
		r.report.killed("nobody, for there was no " + string(k.victim))
		return time.Time{}, ctx.Err()
	}
	if !k.gone && livecluster.Restarts([]corev1.Pod{*pod}) == 0 {
		r.note("killed: %s, the process in pod %s", k.victim, pod.Name)
		r.report.killed(string(k.victim) + ", the process")
		return at, nil
	}
	r.note("killed: %s, with its pod %s", k.victim, pod.Name)
	r.report.killed(string(k.victim) + ", with its pod")
	return at, deletePod(ctx, pod)
}

// deletePod makes the API server forget a pod at once.
func deletePod(ctx context.Context, pod *corev1.Pod) error {
	return insist(ctx, "delete pod "+pod.Name, func(ctx context.Context) error {
		err := cluster.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		return client.IgnoreNotFound(err)
	})
}

// findOperator returns the pod that leads, or one that does not.
func findOperator(ctx context.Context, which victim) (*corev1.Pod, error) {
	if which == leader {
		return cluster.Leader(ctx)
	}
	holder, err := cluster.LeaseHolder(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := cluster.OperatorPods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if !livecluster.Leads(&pods[i], holder) {
			return &pods[i], nil
		}
	}
	return nil, errors.New("there is no standby")
}
