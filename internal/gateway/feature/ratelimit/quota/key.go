package quota

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"
)

const (
	// SecretKey is the key of the Secret by which the replicas of a gateway know each other.
	SecretKey = "key"
	// SecretBytes is the length of its value.
	SecretBytes = 32
	// Port is where the replicas reach each other, for TCP. Nobody else can have it in a pod.
	Port = 15022
)

// SecretName returns the name of that Secret.
func SecretName(gateway string) string { return gateway + "-quota" }

// Key identifies what is counted together. It is a keyed hash: who does not have the secret learns from it neither the address
// nor the name of a client.
type Key [16]byte

func (k Key) number() uint64 { return binary.BigEndian.Uint64(k[:8]) }

// Subject is what a key stands for.
type Subject struct {
	// Route is the name of the route.
	Route string
	// Limit and Per are those of its rate limit. Listeners may have limits of their own for a route.
	Limit Limit
	Per   byte
	// Requests and Period are how the rate is written. One in a second and 60 in a minute are two limits.
	Requests int64
	Period   time.Duration
	// Who is the authenticated name of the client, or else Client is what counts as its address. Both may be empty.
	Who    string
	Client netip.Addr
}

// Key returns the key of a subject. Different subjects have different texts.
func (s *Subject) Key(secret []byte) Key {
	text := make([]byte, 0, 80+len(s.Route)+len(s.Who))
	text = binary.BigEndian.AppendUint64(text, uint64(s.Requests))
	text = binary.BigEndian.AppendUint64(text, uint64(s.Period))
	text = binary.BigEndian.AppendUint64(text, uint64(s.Limit.Interval))
	text = binary.BigEndian.AppendUint64(text, uint64(s.Limit.Tolerance))
	text = append(text, s.Per)
	client := s.Client.AsSlice() // empty for none
	text = append(append(text, byte(len(client))), client...)
	text = binary.BigEndian.AppendUint32(text, uint32(len(s.Route)))
	text = append(append(text, s.Route...), s.Who...)
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(text)
	return Key(mac.Sum(nil)[:16])
}
