package proxy

import (
	"errors"
	"io"
	"net/netip"
	"sync"
)

const (
	// maxKept bounds the bytes that are kept whole: bodies that Services judge, and what they answer. maxKeptOfClient bounds
	// those for one client.
	maxKept         = 64 << 20
	maxKeptOfClient = 8 << 20
	// firstPiece is how much room is taken first. Then it doubles. So what is only declared costs nothing.
	firstPiece = 4 << 10
)

var (
	errTooLarge = errors.New("there are too many bytes")
	errNoRoom   = errors.New("too many bytes are kept for other requests")
)

// keptRoom is the room for bytes that are kept whole.
type keptRoom struct {
	mu       sync.Mutex
	used     int64
	byClient map[netip.Addr]int64
}

func newKeptRoom() *keptRoom { return &keptRoom{byClient: map[netip.Addr]int64{}} }

// take takes room. A client that nobody knows has no bound of its own.
func (r *keptRoom) take(client netip.Addr, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+size > maxKept || client.IsValid() && r.byClient[client]+size > maxKeptOfClient {
		return false
	}
	r.used += size
	if client.IsValid() {
		r.byClient[client] += size
	}
	return true
}

func (r *keptRoom) leave(client netip.Addr, size int64) {
	if size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= size
	if !client.IsValid() {
		return
	}
	if r.byClient[client] -= size; r.byClient[client] <= 0 {
		delete(r.byClient, client)
	}
}

// kept are bytes that are kept whole, and the room that they take.
type kept struct {
	bytes []byte
	taken int64
}

// read reads a source to its end: at most so many bytes, and as many as were declared unless that is negative.
func (k *kept) read(room *keptRoom, client netip.Addr, source io.Reader, most, declared int64) error {
	if declared >= 0 {
		most = min(most, declared)
	}
	for {
		if len(k.bytes) == cap(k.bytes) {
			held := int64(len(k.bytes))
			piece := min(max(firstPiece, held), most+1-held) // with room to see the end
			if !room.take(client, piece) {
				return errNoRoom
			}
			k.taken += piece
			grown := make([]byte, held, held+piece)
			copy(grown, k.bytes)
			k.bytes = grown
		}
		n, err := source.Read(k.bytes[len(k.bytes):cap(k.bytes)])
		k.bytes = k.bytes[:len(k.bytes)+n]
		switch {
		case int64(len(k.bytes)) > most:
			return errTooLarge
		case errors.Is(err, io.EOF) && declared >= 0 && int64(len(k.bytes)) != declared:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// drop gives the room back.
func (k *kept) drop(room *keptRoom, client netip.Addr) {
	room.leave(client, k.taken)
	*k = kept{}
}
