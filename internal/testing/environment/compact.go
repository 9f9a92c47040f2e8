package environment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Compact makes etcd forget all history, as the API server asks it to every five minutes. What the API server keeps in
// memory for its watches stays.
func (e *Environment) Compact(ctx context.Context) error {
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := e.etcd(ctx, "/v3/kv/range", map[string]any{"key": "AA==", "limit": "1"}, &now); err != nil {
		return fmt.Errorf("ask etcd for its revision: %w", err)
	}
	if err := e.etcd(ctx, "/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil); err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// etcd sends a request to etcd's own HTTP gateway.
func (e *Environment) etcd(ctx context.Context, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.server.ControlPlane.Etcd.URL.JoinPath(path).String(),
		bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
