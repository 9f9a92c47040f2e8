package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	// heartbeatEvery is how often a stream says that it is alive, and how old its view is.
	heartbeatEvery = 15 * time.Second
	// streamFor is how long a stream lasts. The client comes back and goes on where it was.
	streamFor = 10 * time.Minute
	// lookEvery is how often a stream looks when nobody tells it that something was stored, and restFor how long it rests between
	// two looks.
	lookEvery = time.Second
	restFor   = 200 * time.Millisecond
	// streamPage is how many changes are read at a time.
	streamPage = 200
)

// stream sends changes as they are stored, as Server-Sent Events: an event change for each, with its ID, and an event view as
// heartbeat. It reads the history from a place on, so nothing is left out: a client that comes back with Last-Event-ID goes on
// after that change. A slow client gets them later; one that takes nothing is cut off.
func (s *server) stream(w http.ResponseWriter, r *request) {
	st, err := s.newStream(w, r)
	if err != nil {
		failure.Refuse(w, s.failureOf(r.Request, err))
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stored := s.listen(ctx)
	end := s.options.Clock.NewTimer(streamFor)
	defer end.Stop()
	beat := s.options.Clock.NewTicker(heartbeatEvery)
	defer beat.Stop()
	now := make(chan struct{})
	close(now)
	if err := st.beat(); err != nil {
		return
	}
	for {
		more, err := st.look(ctx)
		if err != nil {
			st.fail(err)
			return
		}
		next := stored
		if more {
			next = now
		}
		select {
		case <-ctx.Done():
			return
		case <-end.C():
			return
		case <-beat.C():
			if err := st.beat(); err != nil {
				st.fail(err)
				return
			}
		case <-next:
		}
	}
}

// listen returns a channel that receives after something was stored, until the context ends.
func (s *server) listen(ctx context.Context) <-chan struct{} {
	stored := make(chan struct{}, 1)
	wait := func() error { return rest(ctx, s.options.Clock, lookEvery) }
	done := func() {}
	if s.options.Subscribe != nil {
		subscription := s.options.Subscribe()
		done = subscription.Close
		wait = func() error {
			if err := subscription.Next(ctx); err != nil {
				return err
			}
			return rest(ctx, s.options.Clock, restFor)
		}
	}
	go func() {
		defer done()
		for wait() == nil {
			select {
			case stored <- struct{}{}:
			default: // it will look anyway
			}
		}
	}()
	return stored
}

func rest(ctx context.Context, clock clock.Clock, d time.Duration) error {
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// eventStream is one stream.
type eventStream struct {
	server *server
	w      http.ResponseWriter
	r      *request
	filter *filter
	// cursor is the place up to which everything was sent.
	cursor string
}

func (s *server) newStream(w http.ResponseWriter, r *request) (*eventStream, error) {
	var err error
	known := []string{paramKind, paramNamespace, paramName, paramUID, paramActor, paramType, paramPath, paramFields, paramCursor}
	if r.params, err = readParams(r.URL.RawQuery, known); err != nil {
		return nil, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		r.params[paramCursor] = last
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.within)
	defer cancel()
	if r.kinds, err = s.readKinds(ctx); err != nil {
		return nil, err
	}
	st := &eventStream{server: s, w: w, r: r}
	if st.filter, err = s.readFilter(r); err != nil {
		return nil, err
	}
	if err := r.rights.Problem(); err != nil {
		return nil, err
	}
	if st.cursor = st.filter.Cursor; st.cursor == "" {
		if st.cursor, err = newest(ctx, s.options.Store); err != nil {
			return nil, err
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	view := viewOf(s.viewOf(r.kinds, st.filter.kinds...))
	view.write(header)
	w.WriteHeader(http.StatusOK)
	return st, nil
}

// newest returns the place of the newest change of all, empty if there is none. The user does not see it.
func newest(ctx context.Context, from Store) (string, error) {
	page, err := from.Changes(ctx, store.Query{Limit: 1})
	if err != nil || len(page.Changes) == 0 {
		return "", err
	}
	return page.Changes[0].Position, nil
}

// look sends what was stored since the last time, a page of it, and reports whether there is more. The rights are those of now, up to what
// the caches of the server remember. It takes no longer than an answer may: a client that is told nothing does not come back.
func (st *eventStream) look(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, st.server.within)
	defer cancel()
	if err := st.renew(ctx); err != nil {
		return false, err
	}
	newest, err := newest(ctx, st.server.options.Store)
	if err != nil {
		return false, err
	}
	q := st.filter.Query
	q.Cursor, q.OldestFirst, q.Limit, q.Allow = st.cursor, true, streamPage, st.r.rights.share
	page, err := st.server.options.Store.Changes(ctx, q)
	if err != nil {
		return false, err
	}
	if err := st.r.rights.Problem(); err != nil {
		return false, err
	}
	if st.r.rights.Incomplete() {
		return false, failure.New(failure.TooMany, tooManyQuestions) // whoever goes on from the last place misses nothing
	}
	for i := range page.Changes {
		if err := st.send(&page.Changes[i]); err != nil {
			return false, err
		}
	}
	if err := st.flush(); err != nil {
		return false, err
	}
	switch {
	case page.Next != "":
		st.cursor = page.Next
	case len(page.Changes) > 0:
		st.cursor = page.Changes[len(page.Changes)-1].Position
	case newest != "":
		st.cursor = newest
	}
	return page.Next != "", nil
}

// renew asks again who the user is and what the user may see.
func (st *eventStream) renew(ctx context.Context) error {
	who, err := st.server.tokens.Whose(ctx, st.server.sessions.TokenOf(st.r.Request))
	if err != nil {
		return err
	}
	if who.ID != st.r.user.ID {
		return st.server.tokens.Unauthenticated()
	}
	st.r.rights = grants{st.server.access.RightsOf(ctx, who)}
	if st.filter.Resource != "" && !st.r.rights.In(st.filter.kindAsked(), st.filter.Namespace) {
		return notFound()
	}
	return st.r.rights.Problem()
}

func (st *eventStream) send(c *store.Change) error {
	if !st.filter.matches(c) {
		return nil
	}
	st.filter.trim(c)
	id := st.server.cursors.seal(c.Position)
	return st.write("change", id, api.Change{Record: c.Record, ID: id})
}

// beat says how old the view is.
func (st *eventStream) beat() error {
	ctx, cancel := context.WithTimeout(st.r.Context(), st.server.within)
	defer cancel()
	kinds, err := st.server.readKinds(ctx)
	if err != nil {
		return err
	}
	if err := st.write("view", "", st.server.viewOf(kinds, st.filter.kinds...)); err != nil {
		return err
	}
	return st.flush()
}

// fail tells the client why the stream ends, so that it does not come back in vain.
func (st *eventStream) fail(err error) {
	failure := st.server.failureOf(st.r.Request, err)
	if errors.Is(err, context.Canceled) {
		return
	}
	if st.write("failure", "", failure) == nil {
		_ = st.flush()
	}
}

// flush sends what was written. A page of changes is sent at once: to send each alone is a call of the system and a turn of the client for
// each, which is what takes longest on a busy machine.
func (st *eventStream) flush() error { return http.NewResponseController(st.w).Flush() }

// write writes an event. JSON is on one line, and an ID has letters, digits, - and _ only: nothing in them ends the event.
func (st *eventStream) write(event, id string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	message := &bytes.Buffer{}
	fmt.Fprintf(message, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(message, "id: %s\n", id)
	}
	fmt.Fprintf(message, "data: %s\n\n", raw)
	control := http.NewResponseController(st.w)
	if err := control.SetWriteDeadline(st.server.options.Clock.Now().Add(sentWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = st.w.Write(message.Bytes())
	return err
}
