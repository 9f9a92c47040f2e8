package peers

import (
	"bytes"
	"crypto/tls"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// Config is what a replica connects with.
func Config(id *Identity) *tls.Config { return id.config() }

// Pending returns how many connections have proved nothing yet.
func Pending(m *Mesh) int {
	m.pending.mu.Lock()
	defer m.pending.mu.Unlock()
	return len(m.pending.conns)
}

// Frames returns how many frames were sent.
func Frames(m *Mesh) uint64 { return m.frames.Load() }

// AnswerAll answers the asks in these bytes.
func AnswerAll(q *quota.Quota, sent []byte) (answers, asks int) {
	from, buffer := bytes.NewReader(sent), make([]byte, maxFrame)
	for {
		records, err := readFrame(from, buffer, kindAsks, askBytes)
		if err != nil {
			return answers, asks
		}
		for ; len(records) > 0; records = records[askBytes:] {
			ask := readAsk(records)
			if !bytes.Equal(appendAsk(nil, &ask), records[:askBytes]) {
				panic("an ask is written otherwise than it was read")
			}
			asks++
			if _, wanted := q.Answer(ask); wanted {
				answers++
			}
		}
	}
}

// TakeAll takes the answers in these bytes.
func TakeAll(q *quota.Quota, sent []byte) {
	from, buffer := bytes.NewReader(sent), make([]byte, maxFrame)
	for {
		records, err := readFrame(from, buffer, kindAnswers, answerSize)
		if err != nil {
			return
		}
		for ; len(records) > 0; records = records[answerSize:] {
			answer := readAnswer(records)
			if !bytes.Equal(appendAnswer(nil, &answer), records[:answerSize]) {
				panic("an answer is written otherwise than it was read")
			}
			q.Answered(1, answer)
		}
	}
}
