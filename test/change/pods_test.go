//go:build e2e || change

package change

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// watchPods notes what becomes of every pod, and what gateways complain about, until the
// test ends.
func (r *run) watchPods() {
	r.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	watcher, err := cluster.Watch(ctx, &corev1.PodList{}, client.InNamespace(r.namespace))
	if err != nil {
		cancel()
		r.Fatal(err)
	}
	var wait sync.WaitGroup
	r.Cleanup(func() {
		cancel()
		watcher.Stop()
		wait.Wait()
	})
	wait.Go(func() {
		states, followed := map[string]string{}, map[string]bool{}
		for e := range watcher.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if now := stateOf(string(e.Type), pod); now != states[pod.Name] {
				states[pod.Name] = now
				r.record.note("pod %s: %s", pod.Name, now)
			}
			if isGateway(pod) && pod.Status.Phase == corev1.PodRunning && !followed[pod.Name] {
				followed[pod.Name] = true
				name := pod.Name
				wait.Go(func() { r.followLog(ctx, clientset, name) })
			}
		}
	})
}

// isGateway tells the pods of a gateway from those of backends.
func isGateway(pod *corev1.Pod) bool {
	return pod.Labels[slipwayv1alpha1.LabelAPIGateway] != "" || pod.Labels[gatewayv1.GatewayNameLabelKey] != ""
}

// stateOf describes a pod in few words.
func stateOf(eventType string, pod *corev1.Pod) string {
	if eventType == "DELETED" {
		return "gone"
	}
	words := []string{strings.ToLower(string(pod.Status.Phase))}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			words = append(words, "ready")
		}
	}
	if !pod.DeletionTimestamp.IsZero() {
		words = append(words, "ending")
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 {
			words = append(words, fmt.Sprintf("RESTARTED %d times", status.RestartCount))
		}
	}
	return strings.Join(words, ", ")
}

// followLog notes the lines of a gateway's log that speak of something that went wrong.
func (r *run) followLog(ctx context.Context, clientset kubernetes.Interface, pod string) {
	stream, err := clientset.CoreV1().Pods(r.namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		r.record.note("no log of %s: %v", pod, err)
		return
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		line := lines.Text()
		if strings.Contains(line, `"status":5`) || strings.Contains(line, `"failure"`) || strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) {
			r.record.note("log of %s: %s", pod, line)
		}
	}
}
