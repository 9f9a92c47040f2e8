package why

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// webAppFindings are the findings of a WebApp.
type webAppFindings struct {
	findings
	app    *slipwayv1alpha1.WebApp
	config []configFinding
	claim  *corev1.PersistentVolumeClaim
}

// loadWebApp reads everything that the tree of a WebApp needs. What the user may not read is
// listed and left out, because the rest is still useful.
func loadWebApp(ctx context.Context, all *command.AnyClients, asked named) (explained, error) {
	c := all.Clients
	app, err := c.GetWebApp(ctx, asked.name)
	if err != nil {
		return nil, err
	}
	f := &webAppFindings{findings: findings{clients: c}, app: app}
	steps := append(workloadSteps(ctx, c, f.facts(), desired.Name(app),
		desired.Selector(app)), step{"the PersistentVolumeClaim", func() (err error) {
		if app.Spec.Storage != nil {
			f.claim, err = orNil(c.Kube.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, desired.VolumeName(app), metav1.GetOptions{}))
		}
		return err
	}}, eventsStep(ctx, c, f.facts()))
	if err := f.read(f.ref(), steps); err != nil {
		return nil, err
	}
	if f.config, err = loadConfig(ctx, c, f.facts(), f.ref(), configUses(app.Spec)); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *webAppFindings) owner() command.Declared { return f.app }

func (f *webAppFindings) ref() string { return command.WebAppRef(f.app.Name) }

func (f *webAppFindings) explain() whyView {
	f.sharesVolume = f.app.Spec.Storage != nil
	v := command.Verdict(f.app, f.app.Generation)
	owner := workloadOwner{f.app, f.ref(), f.app.Name}
	root := asFound(node{
		Object: f.ref(), State: v.State, Reason: v.Reason, Message: v.Message,
		Causes: slices.Concat(configNodes(f.config, v), serviceNodes(f.facts(), owner), deploymentNodes(f.facts(), owner), claimNodes(f)),
	})
	return whyView{
		node: ownRoot(f.facts(), f.app, root), Name: f.app.Name, Namespace: f.app.Namespace,
		Replicas: command.Replicas(f.app), Image: f.app.Status.Image, Unreadable: f.unreadable,
	}
}

func claimNodes(f *webAppFindings) []node {
	object := "persistentvolumeclaim/" + desired.VolumeName(f.app)
	switch {
	case f.app.Spec.Storage == nil || slices.Contains(f.unreadable, "the PersistentVolumeClaim"):
		return nil
	case f.claim == nil:
		return []node{{Object: object, State: health.Progressing, Reason: "NotFound", Message: "does not exist yet"}}
	case f.claim.Labels[slipwayv1alpha1.LabelWebApp] != f.app.Name:
		// A volume may outlive its WebApp, so it need not have an owner reference. It has
		// the label.
		return []node{foreign(object, f.ref())}
	case f.claim.Status.Phase == corev1.ClaimLost:
		return []node{{
			Object: object, State: health.Failed, Reason: "Lost", Message: "its PersistentVolume is gone",
			Events: warnings(f.facts(), f.claim.UID),
		}}
	case f.claim.Status.Phase != corev1.ClaimBound:
		message := "is not bound to a volume"
		if class := f.claim.Spec.StorageClassName; class != nil && *class != "" {
			message += fmt.Sprintf(" (storage class %q)", *class)
		} else {
			message += " and has no storage class: set spec.storage.storageClassName, or give the cluster a default class"
		}
		return []node{{
			Object: object, State: health.Progressing, Reason: slipwayv1alpha1.ReasonVolumePending, Message: message,
			Events: warnings(f.facts(), f.claim.UID),
		}}
	}
	return nil
}
