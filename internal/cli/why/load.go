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

	"github.com/slipway-dev/slipway/internal/cli/command"
)

// findings is what was read of an object, whatever its kind. What does not exist is nil.
type findings struct {
	// clients read what is about the object, in its namespace.
	clients *command.Clients
	// other is how to ask for another object that the given name could mean as well. Empty: there is none.
	other       string
	deployment  *appsv1.Deployment
	service     *corev1.Service
	replicaSets []appsv1.ReplicaSet
	pods        []corev1.Pod
	// events are the warning events of the namespace.
	events []corev1.Event
	logs   map[logTarget]logTail
	// unreadable lists what the user may not read.
	unreadable []string
	now        time.Time
	// sharesVolume reports whether a new pod waits until those before it have left the volume.
	sharesVolume bool
	// byCauses reports whether the object is not well when something below it has failed, whatever it says of itself.
	byCauses bool
}

func (f *findings) facts() *findings { return f }

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

// workloadOwner is who owns a Deployment and a Service.
type workloadOwner struct {
	object metav1.Object
	// ref is its kind/name, and child the name of the Deployment and the Service.
	ref, child string
}

// step reads one part of the findings.
type step struct {
	what string
	read func() error
}

// read runs the steps that read what is about an object. It remembers what the user may not read.
func (f *findings) read(ref string, steps []step) error {
	for _, step := range steps {
		if err := step.read(); apierrors.IsForbidden(err) {
			f.unreadable = append(f.unreadable, step.what)
		} else if err != nil {
			return fmt.Errorf("read %s of %s: %w", step.what, ref, err)
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

// loadConfig checks which Secrets and ConfigMaps that an object requires exist and have the keys
// that are used. It keeps only the names of the keys, not the content.
func loadConfig(ctx context.Context, c *command.Clients, f *findings, ref string, uses []configUse) ([]configFinding, error) {
	var config []configFinding
	for _, use := range uses {
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
			return nil, fmt.Errorf("read %s %q of %s: %w", use.kind, use.name, ref, err)
		default:
			for _, key := range use.keys {
				if !keys[key] {
					finding.missing = append(finding.missing, key)
				}
			}
		}
		config = append(config, finding)
	}
	return config, nil
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
