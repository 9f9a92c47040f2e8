package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Batch is what Commit stores as one: all of it, or nothing. It has at most 2,000 parts: records, states, messages and so on.
type Batch struct {
	// Kind is the kind of Checkpoint, Records, Put and Drop. It may be empty when there are none.
	Kind change.Kind
	// Checkpoint is the resource version up to which everything about the kind is stored with this batch. Empty: as it was.
	Checkpoint string
	// Reached is when everything up to the checkpoint was seen. Zero: now.
	Reached time.Time
	// Records are changes, in their order. One that is there already (its object, its resource version and its type, in the same
	// file) is ignored and counted, unless it is SchemaDriven.
	Records []change.Record
	// Put are the last states of objects. When an object is there more than once, the last counts. The body of a state at whose
	// resource version there is a record may be stored with it.
	Put []change.State
	// Drop are objects that are gone. An object is not both in Put and in Drop.
	Drop []types.UID
	// Outbox are messages to send. One with a key that is waiting already is ignored, and one of an output that has MaxWaiting refused.
	Outbox []Message
	// Values are set, or deleted where Data is nil.
	Values []Value
	// Definitions are versions of definitions that were seen.
	Definitions []Definition
	// Reported are the losses (Loss.ID) that the records of this batch tell of. They are not reported again.
	Reported []int64
}

// Message is something that has to be sent, at least once.
type Message struct {
	// ID is given by the store.
	ID int64
	// Key identifies the message for who receives it: the same key is the same message. Required.
	Key string
	// Output says where it goes. The store does not look at it.
	Output string
	// Body is what is sent.
	Body []byte
	// Created is when it was made, and Next when it may be tried.
	Created time.Time
	Next    time.Time
	// Attempts is how often it was tried.
	Attempts int
}

// Value is something small under a name, such as a timer of a rule. Names with the same beginning are read together.
type Value struct {
	Key  string
	Data []byte
}

// KeyFingerprint is the name of the value that identifies the key with which secrets and states are hashed. With another key all
// hashes are others.
const KeyFingerprint = "meta/key-fingerprint"

// Definition is a version of a CustomResourceDefinition.
type Definition struct {
	// Name, UID and Generation are those of the object.
	Name       string
	UID        types.UID
	Generation int64
	// Time is when it was seen.
	Time time.Time
	// Content is the definition. Where it is the same as that of the version before, nothing is stored.
	Content []byte
}

const (
	maxText     = 64 << 10
	maxParts    = 2000
	noKindTaken = "a batch without a kind has no checkpoint, records or states"
)

func (b *Batch) validate() error {
	if b.Kind.Resource == "" && (b.Checkpoint != "" || len(b.Records)+len(b.Put)+len(b.Drop) > 0) {
		return invalid(noKindTaken)
	}
	if n := len(b.Records) + len(b.Put) + len(b.Drop) + len(b.Outbox) + len(b.Values) + len(b.Definitions); n > maxParts {
		return invalid("a batch of %d parts, and %d is the most", n, maxParts)
	}
	for i := range b.Records {
		if err := validateRecord(b.Kind, &b.Records[i]); err != nil {
			return err
		}
	}
	for i := range b.Put {
		if err := validateState(&b.Put[i]); err != nil {
			return err
		}
	}
	return b.validateRest()
}

func (b *Batch) validateRest() error {
	for _, uid := range b.Drop {
		if uid == "" {
			return invalid("an object to drop has no UID")
		}
	}
	for i := range b.Outbox {
		m := &b.Outbox[i]
		if m.Key == "" || len(m.Key) > maxText || len(m.Output) > maxText || len(m.Body) > maxBlob {
			return invalid("a message has no key, or is too long")
		}
		if !storable(m.Created) || !storable(m.Next) {
			return invalid("message %q has a time that cannot be stored", m.Key)
		}
	}
	for _, v := range b.Values {
		if v.Key == "" || len(v.Key) > maxText || len(v.Data) > maxBlob {
			return invalid("a value has no name, or is too long")
		}
	}
	for i := range b.Definitions {
		d := &b.Definitions[i]
		if d.Name == "" || len(d.Name) > maxText || len(d.Content) > maxBlob || !storable(d.Time) {
			return invalid("definition %q has no name, no time, or is too long", d.Name)
		}
	}
	return nil
}

func validateRecord(kind change.Kind, r *change.Record) error {
	if r.Kind.GroupResource() != kind.GroupResource() {
		return invalid("a record of %s is in a batch of %s", r.Kind.GroupResource(), kind.GroupResource())
	}
	if typeNumbers[r.Type] == 0 {
		return invalid("a record of the type %q", r.Type)
	}
	if r.Type != change.Gap && r.UID == "" {
		return invalid("a record of %s %q without a UID", r.Type, r.Name)
	}
	if r.Time.IsZero() || !storable(r.Time) || (!r.Since.IsZero() && !storable(r.Since)) {
		return invalid("a record of %s %q without a time, or with one that cannot be stored", r.Type, r.Name)
	}
	if len(r.Name) > maxText || len(r.Namespace) > maxText || len(r.Actor.Name) > maxText || len(r.UID) > maxText || len(r.ResourceVersion) > maxText {
		return invalid("a name in a record is longer than %d bytes", maxText)
	}
	return nil
}

func validateState(state *change.State) error {
	if state.UID == "" || len(state.UID) > maxText || len(state.ResourceVersion) > maxText {
		return invalid("the state of %q has no UID, or one that is too long", state.Name)
	}
	if len(state.Body) > maxBlob || len(state.Managers) > maxBlob {
		return invalid("the state of %q has more than %d bytes", state.Name, maxBlob)
	}
	return nil
}

// storable reports whether nanoseconds since 1970 in 64 bits can say a time: from 1678 to 2261.
func storable(t time.Time) bool {
	return t.IsZero() || (t.Year() > 1678 && t.Year() < 2262)
}

// prepared is a Batch, encoded and compressed by who commits it, so that the one who writes does not have to.
type prepared struct {
	batch   *Batch
	records []preparedRecord
	states  []preparedState
	// cost is about how many bytes are written for it.
	cost int64
}

type preparedRecord struct {
	record *change.Record
	// raw is the payload, and packed is raw, compressed with the dictionary.
	raw, packed []byte
	dictionary  *dictionary
	// body is the whole content after the change, compressed, where it is known.
	body []byte
}

type preparedState struct {
	state          *change.State
	managers, body []byte
}

func (s *Store) prepare(b *Batch) (*prepared, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	p := &prepared{batch: b, states: make([]preparedState, len(b.Put)), records: make([]preparedRecord, len(b.Records))}
	type version struct {
		uid types.UID
		rv  string
	}
	bodies := make(map[version][]byte, len(b.Put))
	for i := range b.Put {
		state := &b.Put[i]
		p.states[i] = preparedState{state: state, managers: s.pack(joinTimes(state)), body: s.pack(state.Body)}
		if len(state.Body) > 0 {
			bodies[version{state.UID, state.ResourceVersion}] = p.states[i].body
		}
		p.cost += int64(len(p.states[i].managers) + len(p.states[i].body) + len(state.Name) + 200)
	}
	dictionary := s.dictionary.Load()
	for i := range b.Records {
		r := &b.Records[i]
		raw := encodePayload(r)
		if len(raw) > maxBlob {
			return nil, invalid("the record of %s %q has more than %d bytes", r.Kind.Kind, r.Name, maxBlob)
		}
		p.records[i] = preparedRecord{
			record: r, raw: raw, packed: dictionary.compress(raw), dictionary: dictionary, body: bodies[version{r.UID, r.ResourceVersion}],
		}
		p.cost += int64(len(p.records[i].packed) + len(p.records[i].body) + len(r.Name) + 400)
	}
	for i := range b.Outbox {
		p.cost += int64(len(b.Outbox[i].Body) + 200)
	}
	for i := range b.Values {
		p.cost += int64(len(b.Values[i].Data) + 200)
	}
	for i := range b.Definitions {
		p.cost += int64(len(b.Definitions[i].Content) + 200)
	}
	return p, nil
}

// pack compresses what is read without the dictionary of a file. Nothing stays nothing.
func (s *Store) pack(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return s.plain.compress(data)
}
