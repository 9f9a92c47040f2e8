package store

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/kit/fair"
)

// The contents of all last states may have half of MaxBytes, so that history has the rest. A namespace gets more of it as long as it
// leaves more free than it has then: whatever one keeps, there is room for the next one. Beyond that a state is kept without its
// content. It has its hash, so it is still seen that the object changes, and not how.

const insertState = `INSERT INTO states(kind, uid, rv, hash, namespace, name, generation, metadata, redacted, reason, managers, body)
	VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(kind, uid) DO UPDATE SET rv = excluded.rv, hash = excluded.hash,
	namespace = excluded.namespace, name = excluded.name, generation = excluded.generation, metadata = excluded.metadata,
	redacted = excluded.redacted, reason = excluded.reason, managers = excluded.managers, body = excluded.body`

func (se *session) putState(kind int64, p *preparedState) error {
	had, err := se.heldBy(kind, p.state.UID)
	if err != nil {
		return err
	}
	state, managers, body := *p.state, p.managers, p.body
	size := int64(len(managers) + len(body))
	if size > had && !se.hasRoomFor(state.Namespace, size) {
		state = state.WithoutContent()
		managers, body = nil, se.store.pack(state.Body)
		size = int64(len(body))
	}
	se.hold(state.Namespace, size)
	return se.state.exec(se.ctx, insertState, kind, storedUID(state.UID), storedVersion(state.ResourceVersion), state.Hash[:], state.Namespace,
		state.Name, state.Generation, readingOf(&state), state.Redacted, state.Reason, managers, body)
}

func (se *session) dropState(kind int64, uid types.UID) error {
	if _, err := se.heldBy(kind, uid); err != nil {
		return err
	}
	return se.state.exec(se.ctx, `DELETE FROM states WHERE kind = ? AND uid = ?`, kind, storedUID(uid))
}

// heldBy takes what the content of an object's last state has out of the count, and returns it: it goes, or is replaced.
func (se *session) heldBy(kind int64, uid types.UID) (bytes int64, err error) {
	if se.held == nil {
		if err := se.countHeld(); err != nil {
			return 0, err
		}
	}
	const one = `SELECT namespace, ` + contentBytes + ` FROM states WHERE kind = ? AND uid = ?`
	err = se.state.each(se.ctx, one, []any{kind, storedUID(uid)}, func(row scanner) error {
		var namespace string
		err := row.Scan(&namespace, &bytes)
		se.hold(namespace, -bytes)
		return err
	})
	return bytes, err
}

const contentBytes = `coalesce(length(managers), 0) + coalesce(length(body), 0)`

// countHeld counts what the contents have.
func (se *session) countHeld() error {
	se.held, se.heldAll = map[string]int64{}, 0
	return se.state.each(se.ctx, `SELECT namespace, sum(`+contentBytes+`) FROM states GROUP BY namespace`, nil, func(row scanner) error {
		var namespace string
		var bytes int64
		err := row.Scan(&namespace, &bytes)
		se.hold(namespace, bytes)
		return err
	})
}

func (se *session) hold(namespace string, bytes int64) {
	se.heldAll += bytes
	if se.held[namespace] += bytes; se.held[namespace] == 0 {
		delete(se.held, namespace)
	}
}

// hasRoomFor reports whether a namespace may have so many bytes more.
func (se *session) hasRoomFor(namespace string, bytes int64) bool {
	return fair.Share(int(se.held[namespace]+bytes), int(se.store.options.MaxBytes/2-se.heldAll-bytes))
}
