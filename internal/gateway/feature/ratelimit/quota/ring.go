package quota

import "hash/fnv"

// Peer is another replica that can be asked.
type Peer interface {
	// Ask sends an ask. It never blocks, and returns false if the ask cannot be sent.
	Ask(ask Ask) bool
}

// Member is a replica that takes requests.
type Member struct {
	// Name is the same in the rings of all replicas.
	Name string
	// Self means this replica.
	Self bool
	// Peer is nil for this replica, and for one that is not reached.
	Peer Peer
	// Connection identifies the connection to the peer. Another one may be to a replica that has forgotten everything.
	Connection uint64
}

// Ring is the replicas that share limits, as this one sees them.
type Ring struct {
	// Members are all that are known.
	Members []Member
	// Reached is how many other members reach this one.
	Reached int

	hashes []uint64
	self   bool // whether this replica is a member
}

// prepare fills in what is computed.
func (r *Ring) prepare() *Ring {
	r.hashes = make([]uint64, len(r.Members))
	for i, member := range r.Members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(member.Name))
		r.hashes[i] = mix(h.Sum64())
		r.self = r.self || member.Self
	}
	return r
}

// owner returns the member that owns a key, by rendezvous hashing. It returns nil if this replica is alone.
func (r *Ring) owner(key Key) *Member {
	var best *Member
	var highest uint64
	text := key.number()
	for i, hash := range r.hashes {
		if weight := mix(hash ^ text); best == nil || weight > highest {
			best, highest = &r.Members[i], weight
		}
	}
	return best
}

// all returns the number of replicas that may take requests. A replica that is no member, because it starts or ends, takes
// some too.
func (r *Ring) all() int64 {
	if r.self {
		return int64(len(r.Members))
	}
	return int64(len(r.Members)) + 1
}

// own returns the part of a limit that this replica gives for the keys that it owns: that of itself and of those that reach it.
func (r *Ring) own(limit Limit) Limit { return limit.part(int64(r.Reached)+1, int64(len(r.Members))) }

// alone returns the part of a limit for one replica.
func (r *Ring) alone(limit Limit) Limit { return limit.part(1, r.all()) }

// sameMembers reports whether both rings give every key the same owner.
func (r *Ring) sameMembers(other *Ring) bool {
	if len(r.Members) != len(other.Members) {
		return false
	}
	for i := range r.Members {
		if r.Members[i].Name != other.Members[i].Name || r.Members[i].Self != other.Members[i].Self {
			return false
		}
	}
	return true
}

// mix spreads the bits of a number over all of its bits (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
