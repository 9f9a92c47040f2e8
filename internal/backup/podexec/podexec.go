// Package podexec runs a command in a container of a pod, by the subresource exec of the API server, and tells how it ended.
//
// Only a status that says so is a success. client-go's remotecommand takes an error stream that ends empty for one, and that
// is how a connection looks that broke. It also reads whatever a container writes. So the few messages of the protocol
// (v5.channel.k8s.io over a WebSocket, which every API server since 1.30 speaks) are read here, up to a bound.
package podexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/websocket"
)

const (
	// maxOutput is how much a command may write. It is dropped: it may hold secrets, and a status is read by many.
	maxOutput = 1 << 20
	// maxStatus bounds the status.
	maxStatus = 64 << 10
	// pingEvery keeps what is between here and the API server from closing an idle connection.
	pingEvery = 10 * time.Second
	// pingMessage is the type of a ping in RFC 6455.
	pingMessage = 9
)

// ErrTooMuchOutput is a command that wrote more than it may.
var ErrTooMuchOutput = fmt.Errorf("the command wrote more than %d bytes to its standard error", maxOutput)

// ExitError is a command that ended with another exit code than 0.
type ExitError struct{ Code int }

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("the command ended with exit code %d", e.Code)
}

// Client runs commands.
type Client struct {
	config *rest.Config
	core   rest.Interface
}

// New returns a client with an access to the API server.
func New(config *rest.Config, clients kubernetes.Interface) *Client {
	return &Client{config: config, core: clients.CoreV1().RESTClient()}
}

// Exec runs a command, and returns nil when it has ended with exit code 0. Any error but an ExitError and ErrTooMuchOutput
// means that nobody knows how it ended, or whether it began. When ctx ends the connection is closed; the command may go on.
func (c *Client) Exec(ctx context.Context, namespace, pod, container string, command []string) error {
	address := c.core.Get().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stderr: true}, scheme.ParameterCodec).URL()
	transport, holder, err := websocket.RoundTripperFor(c.config)
	if err != nil {
		return fmt.Errorf("make a connection: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	connection, err := websocket.Negotiate(transport, holder, request, remotecommand.StreamProtocolV5Name)
	if err != nil {
		return fmt.Errorf("connect to the container: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	defer func() { _ = connection.Close() }()
	connection.SetReadLimit(maxOutput)
	go keepAlive(ctx, func() error { return connection.WriteControl(pingMessage, nil, time.Time{}) })
	err = read(func() ([]byte, error) {
		_, message, err := connection.ReadMessage()
		return message, err
	})
	if cause := ctx.Err(); cause != nil && isUnknown(err) {
		return cause
	}
	return err
}

func keepAlive(ctx context.Context, ping func() error) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if ping() != nil {
				return
			}
		}
	}
}

func isUnknown(err error) bool {
	exit := (*ExitError)(nil)
	return err != nil && !errors.As(err, &exit) && !errors.Is(err, ErrTooMuchOutput)
}

// read reads messages until one has told how the command ended. The first byte of each says which stream it is of.
func read(next func() ([]byte, error)) error {
	var output int
	var status []byte
	for {
		message, err := next()
		if err != nil {
			return fmt.Errorf("the connection ended before the command told how it did: %w", err)
		}
		if output += len(message); output > maxOutput {
			return ErrTooMuchOutput
		}
		if len(message) == 0 || message[0] != remotecommand.StreamErr {
			continue
		}
		if status = append(status, message[1:]...); len(status) > maxStatus {
			return errors.New("the status of the command is too long")
		}
		if len(bytes.TrimSpace(status)) > 0 && json.Valid(status) {
			return verdict(status)
		}
	}
}

// verdict reads the status of a command.
func verdict(raw []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("read the status of the command: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	if status.Status == metav1.StatusFailure && status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			code, err := strconv.ParseUint(cause.Message, 10, 8)
			if cause.Type == remotecommand.ExitCodeCauseType && err == nil && code > 0 {
				return &ExitError{Code: int(code)}
			}
		}
	}
	return fmt.Errorf("the command did not run: %s %s", status.Reason, status.Message)
}
