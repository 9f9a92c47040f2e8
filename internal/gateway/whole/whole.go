// Package whole keeps bodies whole in memory, such as those that a Service judges, within bounds for each client and each Service.
package whole

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

// These are the errors of Read, beside those of the source.
var (
	ErrTooLarge = errors.New("there are too many bytes")
	ErrNoRoom   = errors.New("too many bytes are kept for other requests")
)

// Room is the room for bytes that are kept whole.
type Room struct {
	mu        sync.Mutex
	used      int64
	byClient  map[netip.Addr]int64
	byService map[string]int64
}

// Owner is for whom bytes are kept. A client that nobody knows has no bound of its own.
type Owner struct {
	Client  netip.Addr
	Service string // model.Backend.ID
}

// NewRoom returns an empty room.
func NewRoom() *Room {
	return &Room{byClient: map[netip.Addr]int64{}, byService: map[string]int64{}}
}

// Empty reports whether nothing is kept, and nothing is known of who kept something.
func (r *Room) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used == 0 && len(r.byClient) == 0 && len(r.byService) == 0
}

func (r *Room) take(of Owner, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+size > maxKept || r.byService[of.Service]+size > maxKeptOfService ||
		of.Client.IsValid() && r.byClient[of.Client]+size > maxKeptOfClient {
		return false
	}
	r.used += size
	r.byService[of.Service] += size
	if of.Client.IsValid() {
		r.byClient[of.Client] += size
	}
	return true
}

func (r *Room) leave(of Owner, size int64) {
	if size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= size
	if r.byService[of.Service] -= size; r.byService[of.Service] <= 0 {
		delete(r.byService, of.Service)
	}
	if !of.Client.IsValid() {
		return
	}
	if r.byClient[of.Client] -= size; r.byClient[of.Client] <= 0 {
		delete(r.byClient, of.Client)
	}
}

// Bytes are bytes that are kept whole, and the room that they take.
type Bytes struct {
	// Data are the bytes.
	Data []byte

	of    Owner
	taken int64
}

// Read reads a source to its end: at most so many bytes, and as many as were declared unless that is negative.
func (k *Bytes) Read(room *Room, of Owner, source io.Reader, most, declared int64) error {
	k.of = of
	if declared >= 0 {
		most = min(most, declared)
	}
	for {
		if len(k.Data) == cap(k.Data) {
			held := int64(len(k.Data))
			piece := min(max(firstPiece, held), most+1-held) // with room to see the end
			if !room.take(of, piece) {
				return ErrNoRoom
			}
			k.taken += piece
			grown := make([]byte, held, held+piece)
			copy(grown, k.Data)
			k.Data = grown
		}
		n, err := source.Read(k.Data[len(k.Data):cap(k.Data)])
		k.Data = k.Data[:len(k.Data)+n]
		switch {
		case int64(len(k.Data)) > most:
			return ErrTooLarge
		case errors.Is(err, io.EOF) && declared >= 0 && int64(len(k.Data)) != declared:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Drop gives the room back.
func (k *Bytes) Drop(room *Room) {
	room.leave(k.of, k.taken)
	*k = Bytes{}
}
