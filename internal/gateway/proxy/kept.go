package proxy

import (
	"errors"
	"io"
	"net/netip"
	"sync"
)

const (
	// maxKept bounds the bytes that are kept whole: bodies that Services judge, and what they answer. maxKeptOfClient bounds
	// those for one client, and maxKeptOfService those for one Service: its clients must not keep others from being asked.
	maxKept          = 64 << 20
	maxKeptOfClient  = 8 << 20
	maxKeptOfService = 16 << 20
	// firstPiece is how much room is taken first. Then it doubles. So what is only declared costs nothing.
	firstPiece = 4 << 10
)

var (
	errTooLarge = errors.New("there are too many bytes")
	errNoRoom   = errors.New("too many bytes are kept for other requests")
)

// keptRoom is the room for bytes that are kept whole.
type keptRoom struct {
	mu        sync.Mutex
	used      int64
	byClient  map[netip.Addr]int64
	byService map[string]int64
}

// keptFor is for whom bytes are kept. A client that nobody knows has no bound of its own.
type keptFor struct {
	client  netip.Addr
	service string // model.Backend.ID
}

func newKeptRoom() *keptRoom {
	return &keptRoom{byClient: map[netip.Addr]int64{}, byService: map[string]int64{}}
}

func (r *keptRoom) take(of keptFor, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+size > maxKept || r.byService[of.service]+size > maxKeptOfService || of.client.IsValid() && r.byClient[of.client]+size > maxKeptOfClient {
		return false
	}
	r.used += size
	r.byService[of.service] += size
	if of.client.IsValid() {
		r.byClient[of.client] += size
	}
	return true
}

func (r *keptRoom) leave(of keptFor, size int64) {
	if size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= size
	if r.byService[of.service] -= size; r.byService[of.service] <= 0 {
		delete(r.byService, of.service)
	}
	if !of.client.IsValid() {
		return
	}
	if r.byClient[of.client] -= size; r.byClient[of.client] <= 0 {
		delete(r.byClient, of.client)
	}
}

// kept are bytes that are kept whole, and the room that they take.
type kept struct {
	bytes []byte
	of    keptFor
	taken int64
}

// read reads a source to its end: at most so many bytes, and as many as were declared unless that is negative.
func (k *kept) read(room *keptRoom, of keptFor, source io.Reader, most, declared int64) error {
	k.of = of
	if declared >= 0 {
		most = min(most, declared)
	}
	for {
		if len(k.bytes) == cap(k.bytes) {
			held := int64(len(k.bytes))
			piece := min(max(firstPiece, held), most+1-held) // with room to see the end
			if !room.take(of, piece) {
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
func (k *kept) drop(room *keptRoom) {
	room.leave(k.of, k.taken)
	*k = kept{}
}
