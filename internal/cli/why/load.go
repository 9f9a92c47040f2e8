package why

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	standarddesired "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// findings is everything that why reads. An object that does not exist is nil.
type findings struct {
	// app is the WebApp. It is nil when the command is about another kind.
	app *slipwayv1alpha1.WebApp
	// gateway has the findings that only an APIGateway has.
	gateway *gatewayFindings
	// backup has those of a Backup, a BackupRun or a Restore. Then there are no others but pods and events.
	backup *backupFindings
	// standard has those of a Gateway or a route of the Gateway API. Then any is that object.
	standard *standardFindings
	// other is how to ask for another object that the given name could mean as well. Empty: there is none.
	other string
	// any is an object of another kind, with what is below it. Then there are no others but events and logs.
	any         *family
	config      []configFinding
	deployment  *appsv1.Deployment
	service     *corev1.Service
	claim       *corev1.PersistentVolumeClaim
	replicaSets []appsv1.ReplicaSet
	pods        []corev1.Pod
	// events are the warning events of the namespace.
	events []corev1.Event
	logs   map[logTarget]logTail
	// unreadable lists what the user may not read.
	unreadable []string
	now        time.Time
}

// configFinding is one use of a Secret or ConfigMap that must exist.
type configFinding struct {
	configUse
	// exists is also false when the object cannot be read.
	exists   bool
	readable bool
	// missing are the keys that are used and do not exist.
	missing []string
}

// logTail is the end of a container's log.
type logTail struct {
	Lines []string `json:"lines,omitempty"`
	// Error says why the log could not be read.
	Error string `json:"error,omitempty"`
}

// owner is the object that owns the children.
func (f *findings) owner() command.Declared {
	if f.backup != nil {
		return f.backup.object
	}
	if f.gateway != nil {
		return f.gateway.object
	}
	return f.app
}

// parent is the owner of the Deployment and the Service.
func (f *findings) parent() metav1.Object {
	if f.standard != nil {
		return f.standard.gateway
	}
	return f.owner()
}

// childName is the name of the Deployment and the Service.
func (f *findings) childName() string {
	if f.standard != nil {
		return standarddesired.Name(f.standard.gateway)
	}
	return f.owner().GetName()
}

// ref formats the name of the owner.
func (f *findings) ref() string {
	if f.any != nil {
		return command.ObjectRef(f.any.asked.kind.Kind, f.any.asked.name)
	}
	if f.backup != nil {
		return f.backup.ref
	}
	if f.gateway != nil {
		return gatewayRef(f.gateway.object.Name)
	}
	return command.WebAppRef(f.app.Name)
}

// verdict is the verdict of the owner's status about its current spec.
func (f *findings) verdict() health.Verdict {
	if f.backup != nil {
		return f.backup.verdict()
	}
	if f.gateway != nil {
		return command.VerdictOf(f.gateway.object, f.ref(), f.gateway.object.Status.ObservedGeneration, f.gateway.object.Generation)
	}
	return command.Verdict(f.app, f.app.Generation)
}

// uses lists the Secrets and ConfigMaps that the spec requires.
func (f *findings) uses() []configUse {
	if f.gateway != nil {
		return gatewaySecrets(f.gateway.object.Spec)
	}
	return configUses(f.app.Spec)
}

// step reads one part of the findings.
type step struct {
	what string
	read func() error
}

// loadWebApp reads everything that the tree of a WebApp needs. What the user may not read is
// listed and left out, because the rest is still useful.
func loadWebApp(ctx context.Context, c *command.Clients, app *slipwayv1alpha1.WebApp) (*findings, error) {
	f := &findings{app: app}
	steps := append(workloadSteps(ctx, c, f, desired.Name(app), desired.Selector(app)), step{"the PersistentVolumeClaim", func() (err error) {
		if app.Spec.Storage != nil {
			f.claim, err = orNil(c.Kube.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, desired.VolumeName(app), metav1.GetOptions{}))
		}
		return err
	}}, eventsStep(ctx, c, f))
	if err := f.read(steps); err != nil {
		return nil, err
	}
	return f, loadConfig(ctx, c, f)
}

// read runs the steps. It remembers what the user may not read.
func (f *findings) read(steps []step) error {
	for _, step := range steps {
		if err := step.read(); apierrors.IsForbidden(err) {
			f.unreadable = append(f.unreadable, step.what)
		} else if err != nil {
			return fmt.Errorf("read %s of %s: %w", step.what, f.ref(), err)
		}
	}
	return nil
}

// workloadSteps read the Deployment and the Service with a name, and the ReplicaSets and
// pods with the labels.
func workloadSteps(ctx context.Context, c *command.Clients, f *findings, name string, selector map[string]string) []step {
	selected := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selector).String()}
	return []step{
		{"the Deployment", func() (err error) {
			f.deployment, err = orNil(c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, name, metav1.GetOptions{}))
			return err
		}},
		{"the Service", func() (err error) {
			f.service, err = orNil(c.Kube.CoreV1().Services(c.Namespace).Get(ctx, name, metav1.GetOptions{}))
			return err
		}},
		{"ReplicaSets", func() error {
			list, err := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, selected)
			if err == nil {
				f.replicaSets = list.Items
			}
			return err
		}},
		{"pods", func() error {
			list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, selected)
			if err == nil {
				f.pods = list.Items
			}
			return err
		}},
	}
}

// eventsStep reads the warning events of the namespace.
func eventsStep(ctx context.Context, c *command.Clients, f *findings) step {
	return step{"events", func() error {
		warnings := fields.OneTermEqualSelector("type", corev1.EventTypeWarning).String()
		list, err := c.Kube.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{FieldSelector: warnings})
		if err == nil {
			f.events = list.Items
		}
		return err
	}}
}

// loadConfig checks which of the required Secrets and ConfigMaps exist and have the keys
// that are used. It keeps only the names of the keys, not the content.
func loadConfig(ctx context.Context, c *command.Clients, f *findings) error {
	for _, use := range f.uses() {
		finding := configFinding{configUse: use, exists: true, readable: true}
		keys := map[string]bool{}
		var err error
		if use.kind == kindSecret {
			var secret *corev1.Secret
			if secret, err = c.Kube.CoreV1().Secrets(c.Namespace).Get(ctx, use.name, metav1.GetOptions{}); err == nil {
				addKeys(keys, secret.Data)
			}
		} else {
			var configMap *corev1.ConfigMap
			if configMap, err = c.Kube.CoreV1().ConfigMaps(c.Namespace).Get(ctx, use.name, metav1.GetOptions{}); err == nil {
				addKeys(keys, configMap.Data)
				addKeys(keys, configMap.BinaryData)
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			finding.exists = false
		case apierrors.IsForbidden(err):
			finding.readable = false
			f.unreadable = append(f.unreadable, fmt.Sprintf("%s %q", use.kind, use.name))
		case err != nil:
			return fmt.Errorf("read %s %q of %s: %w", use.kind, use.name, f.ref(), err)
		default:
			for _, key := range use.keys {
				if !keys[key] {
					finding.missing = append(finding.missing, key)
				}
			}
		}
		f.config = append(f.config, finding)
	}
	return nil
}

func addKeys[V any](keys map[string]bool, data map[string]V) {
	for key := range data {
		keys[key] = true
	}
}

// orNil returns nil for an object that does not exist.
func orNil[T any](object *T, err error) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return object, nil
}

// loadLogs reads the end of some containers' logs. A log that cannot be read is not an
// error: the node may be gone, and that may be the problem itself.
func loadLogs(ctx context.Context, c *command.Clients, targets []logTarget, tail int64) map[logTarget]logTail {
	logs := map[logTarget]logTail{}
	for _, target := range targets {
		lines, err := loadLog(ctx, c, target, tail)
		if err != nil {
			logs[target] = logTail{Error: err.Error()}
			continue
		}
		logs[target] = logTail{Lines: lines}
	}
	return logs
}

func loadLog(ctx context.Context, c *command.Clients, target logTarget, tail int64) ([]string, error) {
	limit := int64(64 << 10) // A log may have no line breaks.
	stream, err := c.Kube.CoreV1().Pods(c.Namespace).GetLogs(target.pod, &corev1.PodLogOptions{
		Container: target.container, Previous: target.previous, TailLines: &tail, LimitBytes: &limit,
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return readLines(stream)
}

func readLines(reader io.Reader) ([]string, error) {
	scanner := bufio.NewScanner(reader)
	scanner.Buffer(nil, 128<<10)
	var lines []string
	for scanner.Scan() {
		lines = append(lines, command.Printable(scanner.Text()))
	}
	return lines, scanner.Err()
}
