package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // deprecated, and what the dialers of client-go take and return
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	streamhttp "k8s.io/streaming/pkg/httpstream"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

const (
	monitorLabels = "app.kubernetes.io/name=slipway,app.kubernetes.io/component=monitor"
	// monitorPort is the name of the container's port, and standardMonitorPort its number where none has that name.
	monitorPort         = "api"
	standardMonitorPort = 8443
)

// tunnel is a connection to a pod, through the API server and the kubelet, as kubectl port-forward makes one. It has no port on
// this machine, so nobody else can use it.
type tunnel struct {
	dialer httpstream.Dialer
	port   string

	mutex      sync.Mutex
	connection httpstream.Connection
	requests   int
}

// newTunnel finds the monitor.
func newTunnel(ctx context.Context, c *command.Clients, config *rest.Config, namespace string) (*tunnel, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: monitorLabels})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not list pods in namespace %q: to reach the monitor you need list of pods and create of "+
			"pods/portforward there, or its address (--monitor-url)", namespace)
	case err != nil:
		return nil, fmt.Errorf("find the monitor in namespace %q: %w", namespace, err)
	case len(pods.Items) == 0:
		return nil, fmt.Errorf(
			"the monitor is not installed in namespace %q: no pod has the label %s (--monitor-namespace names another namespace)",
			namespace, monitorLabels,
		)
	}
	pod := readyPod(pods.Items)
	if pod == nil {
		return nil, fmt.Errorf("the monitor in namespace %q is not ready: kubectl slipway why pod/%s -n %s says why", namespace,
			pods.Items[0].Name, namespace)
	}
	address := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod.Name).SubResource("portforward").URL()
	overWebsocket, err := portforward.NewSPDYOverWebsocketDialer(address, config)
	if err != nil {
		return nil, fmt.Errorf("make a connection: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a connection: %w", err)
	}
	overHTTP := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	// API servers before 1.31 know only the older way. The error is of k8s.io/streaming: that of the same name in apimachinery is
	// another type.
	dialer := portforward.NewFallbackDialer(overWebsocket, overHTTP, func(err error) bool {
		return streamhttp.IsUpgradeFailure(err) || streamhttp.IsHTTPSProxyError(err)
	})
	return &tunnel{dialer: dialer, port: portOf(pod)}, nil
}

func readyPod(pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		pod := &pods[i]
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return pod
			}
		}
	}
	return nil
}

func portOf(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == monitorPort {
				return strconv.Itoa(int(port.ContainerPort))
			}
		}
	}
	return strconv.Itoa(standardMonitorPort)
}

// dial opens a connection to the port of the pod.
func (t *tunnel) dial(context.Context, string, string) (net.Conn, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := t.connect(); err != nil {
		return nil, err
	}
	t.requests++
	headers := http.Header{}
	headers.Set(corev1.PortHeader, t.port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(t.requests))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := t.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("connect to the monitor: %w", err)
	}
	// Nothing is sent on it.
	_ = failures.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("connect to the monitor: %w", err)
	}
	connection := t.connection
	return &tunnelled{Stream: data, remove: func() {
		_ = failures.Reset()
		connection.RemoveStreams(failures, data)
	}}, nil
}

// connect makes the connection that all others go through, when there is none, or it has ended.
func (t *tunnel) connect() error {
	if t.connection != nil {
		select {
		case <-t.connection.CloseChan():
		default:
			return nil
		}
	}
	connection, protocol, err := t.dialer.Dial(portforward.PortForwardProtocolV1Name)
	switch {
	case apierrors.IsForbidden(err):
		return errors.New("you may not connect to the monitor's pod (create pods/portforward)")
	case err != nil:
		return fmt.Errorf("connect to the monitor's pod (this needs create of pods/portforward): %w", err)
	case protocol != portforward.PortForwardProtocolV1Name:
		_ = connection.Close()
		return fmt.Errorf("the API server forwards no ports: it offers %q", protocol)
	}
	t.connection = connection
	return nil
}

// close ends the connection, and all that go through it. One that is still being made is not waited for: an API server that says
// nothing would hold the command back. It ends with the program.
func (t *tunnel) close() {
	if !t.mutex.TryLock() {
		return
	}
	defer t.mutex.Unlock()
	if t.connection != nil {
		_ = t.connection.Close()
	}
}

// tunnelled is one connection through the tunnel.
type tunnelled struct {
	httpstream.Stream
	remove func()
	once   sync.Once
}

// Close ends both directions.
func (c *tunnelled) Close() error {
	c.once.Do(func() {
		_ = c.Reset()
		c.remove()
	})
	return nil
}

// LocalAddr and RemoteAddr are nowhere on this machine.
func (*tunnelled) LocalAddr() net.Addr  { return &net.UnixAddr{Name: "tunnel"} }
func (*tunnelled) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "tunnel"} }

// Deadlines are those of the requests: they close the connection.
func (*tunnelled) SetDeadline(time.Time) error      { return nil }
func (*tunnelled) SetReadDeadline(time.Time) error  { return nil }
func (*tunnelled) SetWriteDeadline(time.Time) error { return nil }
