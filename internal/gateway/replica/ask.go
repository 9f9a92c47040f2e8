package replica

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// send sends a question. An instruction goes with POST, because GET must not change anything.
// A pod of a release before that answers 405 to it, and is asked again in its own way.
func (o *follower) send(ctx context.Context, what question) (*http.Response, error) {
	method, parameters := http.MethodGet, url.Values{}
	if what.hold != nil {
		parameters.Set("wait", strconv.FormatInt(what.hold.Revision, 10))
	}
	if what.word != "" {
		method = http.MethodPost
		parameters.Set(document.StandbyParameter, what.word)
	}
	request, err := http.NewRequestWithContext(ctx, method, o.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = parameters.Encode()
	if what.word != "" {
		document.Instruct(request)
	}
	request.Header["Idempotency-Key"] = nil // to send it twice is harmless, which net/http must know to use a kept connection
	response, err := o.client.Do(request)
	if err != nil || method == http.MethodGet || response.StatusCode != http.StatusMethodNotAllowed {
		return response, err
	}
	_ = response.Body.Close()
	request.Method = http.MethodGet
	return o.client.Do(request)
}

// get returns what the pod says. An UnreadableError is an answer that is none, any other error is
// no answer.
func (o *follower) get(ctx context.Context, what question) (*document.Document, error) {
	patience := Patience
	if what.hold != nil {
		patience = maxHold
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(patience, cancel)
	response, err := o.send(ctx, what)
	late.Stop()
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("status %d", response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, &document.UnreadableError{Message: fmt.Sprintf("%s is answered with status %d", document.Path, response.StatusCode)}
	}
	done := o.share.read(ctx)
	if done == nil {
		return nil, ctx.Err()
	}
	defer done()
	defer time.AfterFunc(readTime, cancel).Stop()
	size := o.allowed()
	body, err := io.ReadAll(io.LimitReader(response.Body, size.Bytes()+1))
	o.share.take(len(body))
	if err != nil {
		return nil, err
	}
	doc, err := document.Read(body, size)
	if err != nil {
		return nil, err
	}
	doc.Problems = bounded(doc.Problems)
	return doc, nil
}
