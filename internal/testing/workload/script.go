package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Behaviour is how the pods of an image behave.
type Behaviour string

// The behaviours.
const (
	// Ready: the pods are ready, and have been for long. ReadyNow: they become ready.
	Ready    Behaviour = "ready"
	ReadyNow Behaviour = "readyNow"
	// ImageNotFound: the image does not exist.
	ImageNotFound Behaviour = "imageNotFound"
	// Crash: the program ends with an error as soon as it starts.
	Crash Behaviour = "crash"
	// NotReady: the program runs and its readiness probe fails.
	NotReady Behaviour = "notReady"
	// SourceEmpty: the step of slipway-backup finds nothing to keep. Unreachable: its repository does not answer.
	SourceEmpty Behaviour = "sourceEmpty"
	// ContentDiffers: what a drill has restored is other than the source was.
	ContentDiffers Behaviour = "contentDiffers"
	Unreachable    Behaviour = "unreachable"
	// Running: the step of slipway-backup goes on, until it behaves in another way.
	Running Behaviour = "running"
)

// Player acts as the cluster for every Deployment of a namespace: it rolls out what is
// asked, and makes the pods of an image behave as its script says. It runs the Jobs of
// slipway-backup too, each step of which behaves as the script says of its name. Services for
// which a load balancer is asked get an address.
type Player struct {
	// Seen changes when what the reader shows does. Default: it is not known when that does.
	Seen func() int

	cluster   Cluster
	reader    client.Reader
	namespace string

	mu     sync.Mutex
	script map[string]Behaviour
	// played is what was done last, by Deployment.
	played map[types.UID]act
	// working are the Jobs whose pods run a step that goes on, by UID.
	working map[types.UID]bool
	// err is what the last look ended with.
	err error
	// behaved reports whether the script was changed since the last look.
	behaved bool
}

// Err is what keeps the player from doing what is to be done, if anything does.
func (p *Player) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// act is what was done for a Deployment.
type act struct {
	generation int64
	behaviour  Behaviour
}

// NewPlayer returns a player for a namespace that finds Deployments through reader,
// which may be a cache of unstructured objects. Images that the script does not name
// are ready. The pods of APIGateways answer as gateways says, which may be nil.
func NewPlayer(writer client.Client, reader client.Reader, gateways *Gateways, namespace string, script map[string]Behaviour) *Player {
	p := &Player{
		cluster: Cluster{Client: writer, Gateways: gateways}, reader: reader, namespace: namespace, script: map[string]Behaviour{},
		played: map[types.UID]act{},
	}
	p.Behave(script)
	return p
}

// Behave changes how the pods of some images behave, those that run too.
func (p *Player) Behave(script map[string]Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.script, script)
	p.working = map[types.UID]bool{}
	p.behaved = true
}

// Run plays until the context ends. It looks often whether anything has changed instead
// of watching, so that it cannot miss anything either.
func (p *Player) Run(ctx context.Context) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for seen := -1; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.Seen != nil {
			now := p.Seen()
			if !p.due(now != seen) {
				continue
			}
			seen = now
		}
		// An error is a lost race, most of the time: the next look is soon.
		err := p.look(ctx)
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
	}
}

// due reports whether there may be something to do, when what the reader shows has changed,
// or not.
func (p *Player) due(changed bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := changed || p.behaved || p.err != nil
	p.behaved = false
	return due
}

func (p *Player) look(ctx context.Context) error {
	todo, err := p.todo(ctx)
	if err != nil {
		return err
	}
	for _, name := range todo {
		// As it is now: what the reader shows may be of another image.
		deployment, err := p.cluster.get(ctx, p.namespace, name)
		if err != nil {
			return err
		}
		image := deployment.Spec.Template.Spec.Containers[0].Image
		played := p.act(deployment, image)
		if err := p.cluster.behave(ctx, deployment, played.behaviour, image); err != nil {
			return err
		}
		// The revision is an annotation, with which a Deployment has another generation.
		played.generation = deployment.Generation
		p.mu.Lock()
		p.played[deployment.UID] = played
		p.mu.Unlock()
	}
	return errors.Join(p.lookAtJobs(ctx), p.lookAtServices(ctx))
}

// Idle reports whether nothing is to be done for the Deployments, Jobs and Services that the reader shows.
func (p *Player) Idle(ctx context.Context) bool {
	for _, left := range []func(context.Context) ([]string, error){p.todo, p.jobs, p.unbalanced} {
		if names, err := left(ctx); err != nil || len(names) > 0 {
			return false
		}
	}
	return true
}

// todo are the Deployments for which something is to be done.
func (p *Player) todo(ctx context.Context) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	// Only looked at, so it need not be copied out of a cache.
	if err := p.reader.List(ctx, list, client.InNamespace(p.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		object := &list.Items[i]
		next := p.act(object, imageOf(object))
		p.mu.Lock()
		if p.played[object.GetUID()] != next {
			names = append(names, object.GetName())
		}
		p.mu.Unlock()
	}
	return names, nil
}

// act is what is to be done for a Deployment.
func (p *Player) act(deployment metav1.Object, image string) act {
	p.mu.Lock()
	defer p.mu.Unlock()
	return act{generation: deployment.GetGeneration(), behaviour: p.script[image]}
}

// imageOf returns the image of the first container.
func imageOf(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template", "spec", "containers")
	list, _ := containers.([]any)
	if len(list) == 0 {
		return ""
	}
	container, _ := list[0].(map[string]any)
	image, _ := container["image"].(string)
	return image
}

func (c *Cluster) behave(ctx context.Context, deployment *appsv1.Deployment, behaviour Behaviour, image string) error {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	stick := func(phase corev1.PodPhase, container corev1.ContainerStatus) error {
		container.Name, container.Image = "app", image
		return c.stick(ctx, deployment, corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{container}})
	}
	switch behaviour {
	case Ready, "":
		return c.rollOut(ctx, deployment)
	case ReadyNow:
		return c.rollOutNow(ctx, deployment)
	case ImageNotFound:
		return stick(corev1.PodPending, corev1.ContainerStatus{State: waiting("ImagePullBackOff", "not found")})
	case Crash:
		return stick(corev1.PodRunning, corev1.ContainerStatus{
			RestartCount: 5,
			State:        waiting("CrashLoopBackOff", "back-off restarting failed container"),
			LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no database"},
			},
		})
	case NotReady:
		return stick(corev1.PodRunning, corev1.ContainerStatus{State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: time.Unix(1, 0)}},
		}})
	default:
		return fmt.Errorf("unknown behaviour %q", behaviour)
	}
}
