package compress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// decode decodes a whole body.
func decode(coding Coding, body []byte) ([]byte, error) {
	if coding == Gzip {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	r, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// text returns bytes that can be compressed, like those of a page.
func text(random *rand.Rand, size int) []byte {
	words := strings.Fields("the quick brown fox jumps over one lazy dog {\"id\": \"name\": <div class= </div> 12345")
	var out bytes.Buffer
	for out.Len() < size {
		fmt.Fprintf(&out, "%s %d ", words[random.IntN(len(words))], random.IntN(1000))
	}
	return out.Bytes()[:size]
}

func TestDecodedBytesAreThoseThatWereEncoded(t *testing.T) {
	for _, coding := range []Coding{Gzip, Zstd} {
		pool := NewPool()
		for seed := range uint64(24) {
			random := rand.New(rand.NewPCG(seed, 1))
			body := text(random, random.IntN(150<<10)*int(seed%4)/3)
			var out bytes.Buffer
			e := pool.Take(coding, Owner{}, &out)
			for rest := body; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(1+random.IntN(40<<10)))
				if _, err := e.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
				if random.IntN(3) > 0 {
					continue
				}
				if err := e.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if random.IntN(4) == 0 { // cut
				pool.Give(e)
				if got, err := decode(coding, out.Bytes()); err == nil && out.Len() > 0 {
					t.Fatalf("%v: a body that was cut looks whole: %d of %d bytes", coding, len(got), len(body))
				}
				continue
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			pool.Give(e)
			got, err := decode(coding, out.Bytes())
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%v, seed %d: %d bytes became %d: %v", coding, seed, len(body), len(got), err)
			}
		}
		if n := pool.InUse(); n != 0 {
			t.Errorf("%v: %d encoders in use", coding, n)
		}
	}
}

// A response must not tell anything of the one before it.
func TestEncoderThatWasUsedWritesWhatANewOneWrites(t *testing.T) {
	for _, coding := range []Coding{Gzip, Zstd} {
		random := rand.New(rand.NewPCG(1, 1))
		secret, body := text(random, 100<<10), text(random, 90<<10)
		pool := NewPool()
		var first, second bytes.Buffer
		e := pool.Take(coding, Owner{}, &first)
		_, _ = e.Write(secret)
		pool.Give(e) // without an end
		again := pool.Take(coding, Owner{}, &second)
		if again != e {
			t.Fatal("another encoder")
		}
		sent := first.Len()
		for _, piece := range [][]byte{secret[:2000], body} {
			_, _ = again.Write(piece)
			_ = again.Flush()
		}
		_ = again.Close()
		if first.Len() != sent {
			t.Errorf("%v: the client before got %d bytes more", coding, first.Len()-sent)
		}
		var fresh bytes.Buffer
		other := newEncoder(coding)
		other.Reset(&fresh)
		for _, piece := range [][]byte{secret[:2000], body} {
			_, _ = other.Write(piece)
			_ = other.Flush()
		}
		_ = other.Close()
		if !bytes.Equal(second.Bytes(), fresh.Bytes()) {
			t.Errorf("%v: %d bytes, and %d by a new encoder", coding, second.Len(), fresh.Len())
		}
	}
}

func TestEncodersInUseAreBounded(t *testing.T) {
	pool := NewPool()
	var taken []*Encoder
	for range MaxInUse {
		taken = append(taken, pool.Take(Gzip, Owner{}, io.Discard))
	}
	if pool.Take(Zstd, Owner{}, io.Discard) != nil {
		t.Error("one more than the bound")
	}
	pool.Give(taken[0])
	if pool.Take(Zstd, Owner{}, io.Discard) == nil {
		t.Error("no encoder, although a place is free")
	}
	if idle := len(pool.idle[Gzip]); idle != 1 {
		t.Errorf("%d idle", idle)
	}
	for _, e := range taken[1:] {
		pool.Give(e)
	}
	if idle := len(pool.idle[Gzip]); idle != maxIdle {
		t.Errorf("%d idle, want %d", idle, maxIdle)
	}
}

// A client, or a route, whose responses do not end leaves encoders to the others.
func TestEachClientAndEachRouteHasAShare(t *testing.T) {
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for name, test := range map[string]struct{ owner, other Owner }{
		"client":                          {Owner{Client: first, Route: "a"}, Owner{Client: second, Route: "b"}},
		"route":                           {Owner{Route: "a"}, Owner{Route: "b"}},
		"client that uses several routes": {Owner{Client: first}, Owner{Client: second}},
	} {
		pool := NewPool()
		all := func(owner Owner) (taken []*Encoder) {
			for {
				e := pool.Take(Gzip, owner, io.Discard)
				if e == nil {
					return taken
				}
				taken = append(taken, e)
			}
		}
		one := all(test.owner)
		other := all(test.other)
		if len(one) != MaxInUse*3/4 || len(other) != MaxInUse*3/16 {
			t.Errorf("%s: got %d and %d of %d", name, len(one), len(other), MaxInUse)
		}
		for _, e := range append(one, other...) {
			pool.Give(e)
		}
		if n := pool.InUse(); n != 0 {
			t.Errorf("%s: %d encoders in use", name, n)
		}
	}
}

// An encoder that was given back may be in use for another client at once. That one's place must stay taken.
func TestAnEncoderThatIsGivenBackFreesThePlaceOfItsOwner(t *testing.T) {
	p := NewPool()
	var using sync.WaitGroup
	for i := range 8 {
		owner := Owner{Client: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), Route: fmt.Sprint(i)}
		using.Go(func() {
			for range 2000 {
				e := p.Take(Gzip, owner, io.Discard)
				if e == nil {
					t.Errorf("%v has no place", owner)
					return
				}
				p.mu.Lock()
				if client, route := p.clients.TakenBy(owner.Client), p.routes.TakenBy(owner.Route); client != 1 || route != 1 {
					t.Errorf("%v has %d and %d places with one encoder", owner, client, route)
				}
				p.mu.Unlock()
				p.Give(e)
			}
		})
	}
	using.Wait()
	if n := p.InUse(); n != 0 {
		t.Errorf("%d are in use", n)
	}
}

func TestMemoryOfAnEncoderIsBounded(t *testing.T) {
	for _, coding := range []Coding{Gzip, Zstd} {
		var before, after runtime.MemStats
		body := text(rand.New(rand.NewPCG(1, 1)), 1<<20)
		runtime.GC()
		runtime.ReadMemStats(&before)
		list := make([]*Encoder, 8)
		for i := range list {
			list[i] = newEncoder(coding)
			list[i].Reset(io.Discard)
			_, _ = list[i].Write(body)
			_ = list[i].Flush()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(len(list))
		t.Logf("%v: %d KiB", coding, each>>10)
		if each > 1<<20 {
			t.Errorf("%v: %d KiB", coding, each>>10)
		}
		runtime.KeepAlive(list)
	}
}
