package store

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// NextMessages returns messages that may be tried at a time, those that wait longest first, and when the next one after them may
// be tried. That is the zero time if there is none. Messages for the outputs in except are left out of both: they neither take the
// place of others, nor are read again and again while they wait.
func (s *Store) NextMessages(ctx context.Context, now time.Time, limit int, except ...string) (messages []Message, next time.Time, err error) {
	outputs, err := json.Marshal(append([]string{}, except...))
	if err != nil {
		return nil, next, err
	}
	if limit < 1 || limit > maxMessages {
		return nil, next, invalid("%d messages at a time, and it must be between 1 and %d", limit, maxMessages)
	}
	err = s.readState(ctx, "reading the outbox", `SELECT id, key, output, created, next, attempts, body FROM outbox
		WHERE output NOT IN (SELECT value FROM json_each(?)) ORDER BY next, id LIMIT ?`, []any{string(outputs), limit + 1}, func(row scanner) error {
		var m Message
		var created, due int64
		if err := row.Scan(&m.ID, &m.Key, &m.Output, &created, &due, &m.Attempts, &m.Body); err != nil {
			return err
		}
		m.Created, m.Next = readTime(created), readTime(due)
		if len(messages) < limit && !m.Next.After(now) {
			messages = append(messages, m)
		} else if next.IsZero() {
			next = m.Next
		}
		return nil
	})
	return messages, next, err
}

const maxMessages = 1000

// MaxWaiting is how many messages wait for one output at most. Further ones are refused until some are delivered or given up: nobody
// fills the disk by messages that are not taken.
const MaxWaiting = 2000

// putMessage stores a message, if its output has room and it is not there already.
func (se *session) putMessage(m *Message, now int64) error {
	if err := se.countWaiting(); err != nil {
		return err
	}
	created, next := storedTime(m.Created), storedTime(m.Next)
	if created == 0 {
		created = now
	}
	if se.waiting[m.Output] >= MaxWaiting {
		known := 0
		if err := se.state.one(se.ctx, `SELECT count(*) FROM outbox WHERE key = ?`, []any{m.Key}, &known); err != nil || known > 0 {
			return err
		}
		se.refused++
		return nil
	}
	n, err := se.state.affect(se.ctx, `INSERT INTO outbox(key, output, created, next, attempts, body) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO NOTHING`,
		m.Key, m.Output, created, next, m.Attempts, m.Body)
	se.waiting[m.Output] += n
	return err
}

// countWaiting counts how many messages wait for each output, once.
func (se *session) countWaiting() error {
	if se.waiting != nil {
		return nil
	}
	counts := map[string]int64{}
	err := se.state.each(se.ctx, `SELECT output, count(*) FROM outbox GROUP BY output`, nil, func(row scanner) error {
		var output string
		var n int64
		err := row.Scan(&output, &n)
		counts[output] = n
		return err
	})
	if err == nil {
		se.waiting = counts
	}
	return err
}

// Waiting returns how many messages are in the outbox.
func (s *Store) Waiting(ctx context.Context) (n int64, err error) {
	err = s.readState(ctx, "counting the outbox", `SELECT count(*) FROM outbox`, nil, func(row scanner) error { return row.Scan(&n) })
	return n, err
}

// Delivered removes messages that arrived.
func (s *Store) Delivered(ctx context.Context, ids ...int64) error {
	return s.update(ctx, func(se *session) error {
		for _, id := range ids {
			if err := se.removeMessage(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (se *session) removeMessage(id int64) error {
	return se.state.each(se.ctx, `DELETE FROM outbox WHERE id = ? RETURNING output`, []any{id}, func(row scanner) error {
		var output string
		if err := row.Scan(&output); err != nil || se.waiting == nil {
			return err
		}
		if se.waiting[output]--; se.waiting[output] <= 0 {
			delete(se.waiting, output)
		}
		return nil
	})
}

// Failed counts an attempt of a message, and says when the next one may be.
func (s *Store) Failed(ctx context.Context, id int64, next time.Time) error {
	if !storable(next) {
		return invalid("the time of the next attempt of message %d cannot be stored", id)
	}
	return s.update(ctx, func(se *session) error {
		return se.state.exec(se.ctx, `UPDATE outbox SET attempts = attempts + 1, next = ? WHERE id = ?`, storedTime(next), id)
	})
}

// Values returns the values whose names begin with a prefix, by their names.
func (s *Store) Values(ctx context.Context, prefix string) ([]Value, error) {
	var values []Value
	err := s.readState(ctx, "reading values", `SELECT key, value FROM vals WHERE key >= ?1 AND key < ?1 || char(1114111) AND substr(key, 1, length(?1)) = ?1 ORDER BY key`,
		[]any{prefix}, func(row scanner) error {
			var v Value
			err := row.Scan(&v.Key, &v.Data)
			if v.Data == nil {
				v.Data = []byte{}
			}
			values = append(values, v)
			return err
		})
	return values, err
}

// Definitions returns the versions of a definition that are kept, the newest first.
func (s *Store) Definitions(ctx context.Context, name string) ([]Definition, error) {
	var definitions []Definition
	err := s.readState(ctx, "reading the versions of a definition", `SELECT name, uid, generation, time, content FROM definitions
		WHERE name = ? ORDER BY id DESC`, []any{name}, func(row scanner) error {
		var d Definition
		var uid string
		var seen int64
		var content []byte
		if err := row.Scan(&d.Name, &uid, &d.Generation, &seen, &content); err != nil {
			return err
		}
		d.UID, d.Time = types.UID(uid), readTime(seen)
		var err error
		d.Content, err = s.unpack(content)
		definitions = append(definitions, d)
		return err
	})
	return definitions, err
}
