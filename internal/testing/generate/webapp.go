package generate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// WebApp makes a WebApp that the API server accepts, before or after it has filled in the
// defaults.
func WebApp(s *Source) *slipwayv1alpha1.WebApp {
	return &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{
			Name: Pick(s, "shop", "a", "x-1", "s"+strings.Repeat("hop", 17)), Namespace: "team", UID: "0000-uid", Generation: 3,
		},
		Spec: Spec(s),
	}
}

// Spec makes the spec of a WebApp.
func Spec(s *Source) slipwayv1alpha1.WebAppSpec {
	spec := slipwayv1alpha1.WebAppSpec{
		Image: Pick(s, "shop:1", "shop:2", "registry.example.com:5000/team/shop@sha256:"+strings.Repeat("0a1b", 16),
			"localhost/a__b/c-d:V1_2", "access-denied:v1"),
		Port:               Pick[int32](s, 8080, 1, 80, 65535),
		Env:                env(s),
		EnvFrom:            envFrom(s),
		Resources:          resources(s),
		ServiceAccountName: Pick(s, "", "default", "robot"),
		Paused:             s.Maybe(),
	}
	for range s.Below(3) {
		spec.Command = append(spec.Command, s.Text())
	}
	if len(spec.Command) > 0 && spec.Command[0] == "" {
		spec.Command[0] = "sh"
	}
	for range s.Below(3) {
		spec.Args = append(spec.Args, s.Text())
	}
	if s.Maybe() {
		spec.Health = &slipwayv1alpha1.HealthCheck{
			Path: "/" + strings.Map(visible, s.Text()), PeriodSeconds: Optional[int32](s, 5, 1, 300),
			TimeoutSeconds:   Optional[int32](s, 2, 1, 300),
			FailureThreshold: Optional[int32](s, 3, 1, 100),
		}
	}
	if s.Maybe() {
		spec.Rollout = &slipwayv1alpha1.Rollout{
			ProgressDeadlineSeconds: Optional[int32](s, 300, 1, 86400),
			OnFailure:               Pick(s, "", slipwayv1alpha1.FailurePolicyRollback, slipwayv1alpha1.FailurePolicyHold),
		}
	}
	for _, name := range []string{"registry", "other"} {
		if s.Maybe() {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, slipwayv1alpha1.LocalReference{Name: name})
		}
	}
	scale(s, &spec)
	spec.Files = files(s)
	return spec
}

// scale decides how many pods there are, and what goes with few only.
func scale(s *Source, spec *slipwayv1alpha1.WebAppSpec) {
	switch s.Below(3) {
	case 0:
		spec.Replicas = Optional[int32](s, 1, 0, 2, 1000)
	case 1:
		spec.Replicas = Optional[int32](s, 1, 0)
		spec.Storage = &slipwayv1alpha1.Storage{
			Size: resource.MustParse(Pick(s, "1Gi", "10Mi", "1536Mi", "5e9")), MountPath: Pick(s, "/data", "/var/lib/shop"),
			StorageClassName: Optional(s, "fast"),
			DeletionPolicy:   Pick(s, "", slipwayv1alpha1.DeletionPolicyRetain, slipwayv1alpha1.DeletionPolicyDelete),
		}
	case 2:
		spec.Replicas = Optional[int32](s, 1, 0, 5)
		spec.Autoscaling = &slipwayv1alpha1.Autoscaling{
			MinReplicas: Optional[int32](s, 1, 2, 3), MaxReplicas: Pick[int32](s, 3, 1000), CPUPercent: Optional[int32](s, 80, 1, 1000),
		}
		if spec.Resources == nil {
			spec.Resources = &slipwayv1alpha1.ResourceRequirements{}
		}
		if spec.Resources.Requests == nil {
			spec.Resources.Requests = corev1.ResourceList{}
		}
		spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("10m")
	}
}

func resources(s *Source) *slipwayv1alpha1.ResourceRequirements {
	if !s.Maybe() {
		return nil
	}
	requirements := &slipwayv1alpha1.ResourceRequirements{}
	// What may be requested never exceeds what may be the limit.
	if s.Maybe() {
		requirements.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(Pick(s, "100m", "0.1", "1000m", "1"))}
	}
	if s.Maybe() {
		requirements.Limits = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(Pick(s, "1", "2", "1e3")),
			corev1.ResourceMemory: resource.MustParse(Pick(s, "64Mi", "1G", "0.5Gi")),
		}
	}
	return requirements
}

// variable is the name of an environment variable.
func variable(s *Source) string { return Pick(s, "LOG_LEVEL", "A", "a.b-c", "_x", s.Word()) }

func env(s *Source) map[string]slipwayv1alpha1.EnvValue {
	var variables map[string]slipwayv1alpha1.EnvValue
	for range s.Below(5) {
		if variables == nil {
			variables = map[string]slipwayv1alpha1.EnvValue{}
		}
		variables[variable(s)] = slipwayv1alpha1.EnvValue(s.Text())
	}
	return variables
}

// source names a Secret or a ConfigMap.
func source(s *Source) (secret, configMap *slipwayv1alpha1.LocalReference) {
	reference := &slipwayv1alpha1.LocalReference{Name: Pick(s, "db", "settings", "a.b", s.Word())}
	if s.Maybe() {
		return nil, reference
	}
	return reference, nil
}

// keys are keys of a Secret or ConfigMap that can be names of variables and files too.
func keys(s *Source) []string {
	var keys []string
	for range s.Below(4) {
		if key := variable(s); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func envFrom(s *Source) []slipwayv1alpha1.EnvFromSource {
	var sources []slipwayv1alpha1.EnvFromSource
	for range s.Below(4) {
		from := slipwayv1alpha1.EnvFromSource{Keys: keys(s), Prefix: Pick(s, "", "DB_", "A"), Optional: s.Maybe()}
		from.SecretRef, from.ConfigMapRef = source(s)
		sources = append(sources, from)
	}
	return sources
}

// visible leaves out what a path of a health check must not hold.
func visible(r rune) rune {
	if r <= ' ' || r == 0x7f {
		return -1
	}
	return r
}

func files(s *Source) []slipwayv1alpha1.FileSource {
	var sources []slipwayv1alpha1.FileSource
	for _, path := range []string{"/etc/shop", "/etc/shop/tls", "/x y"} {
		if !s.Maybe() {
			continue
		}
		file := slipwayv1alpha1.FileSource{MountPath: path, Keys: keys(s), Optional: s.Maybe()}
		file.SecretRef, file.ConfigMapRef = source(s)
		sources = append(sources, file)
	}
	return sources
}
