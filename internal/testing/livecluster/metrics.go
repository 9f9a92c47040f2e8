package livecluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricsReader is the ServiceAccount with which the operator's metrics are read, and the ClusterRole and binding that let it.
const metricsReader = "slipway-test-metrics"

// OperatorMetrics returns what a pod of the operator tells of itself, as Prometheus would ask: with a token where the pod asks for one.
func (c *Cluster) OperatorMetrics(ctx context.Context, asker *http.Client, pod *corev1.Pod) (string, error) {
	address := Address(pod.Status.PodIP, metricsPort) + "/metrics"
	if len(pod.Spec.Containers) == 0 || !slices.Contains(pod.Spec.Containers[0].Args, "--metrics-authentication") {
		return Ask(ctx, asker, address)
	}
	token, err := c.metricsToken(ctx)
	if err != nil {
		return "", fmt.Errorf("a token for metrics: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https"+address[len("http"):], http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	secure := &http.Client{Timeout: asker.Timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // each operator signs its certificate itself
	}}
	response, err := secure.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	return string(body), err
}

// metricsToken makes what lets a ServiceAccount read metrics, and returns a token of it.
func (c *Cluster) metricsToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: metricsReader, Namespace: metav1.NamespaceDefault}}
	for _, object := range []client.Object{
		account,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: metricsReader},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: metricsReader},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: metricsReader, Namespace: metav1.NamespaceDefault}},
		},
	} {
		if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	return request.Status.Token, nil
}
