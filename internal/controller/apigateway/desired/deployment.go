package desired

import (
	"cmp"
	"fmt"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/dataplane"
)

// ProgressDeadlineSeconds is how long a rollout may go without progress before status
// calls it failed.
const ProgressDeadlineSeconds = dataplane.ProgressDeadlineSeconds

// Deployment runs the gateway pods.
func Deployment(in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	spec := in.Gateway.Spec
	return dataplane.Deployment(dataplane.Pods{
		Owner: owner(in.Gateway),
		Image: cmp.Or(spec.Image, in.Image),
		Serve: []string{
			"--gateway=" + in.Gateway.Name,
			fmt.Sprintf("--http=:%d", httpPort),
			// Listened at without certificates too: the first one needs no restart.
			fmt.Sprintf("--https=:%d", httpsPort),
		},
		Ports:        []dataplane.Port{{Name: httpPortName, Number: httpPort}, {Name: httpsPortName, Number: httpsPort}},
		AdminPort:    AdminPort,
		LowPorts:     hasLowPorts(in.Gateway),
		DrainSeconds: children.Or(spec.DrainSeconds, dataplane.DefaultDrainSeconds),
		Resources:    spec.Resources,
		PullSecrets:  spec.ImagePullSecrets,
		Current:      in.Current,
		Replicas:     in.Replicas,
	})
}

// Replicas states a Deployment's number of pods and nothing else.
func Replicas(gateway *slipwayv1alpha1.APIGateway, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	return owner(gateway).Replicas(replicas)
}
