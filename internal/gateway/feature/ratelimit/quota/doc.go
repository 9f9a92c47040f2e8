// Package quota counts requests for all replicas of a gateway together.
//
// Every key of a rate limit has an owner, which is one of the replicas. The owner counts. The others lease tokens from it in
// small batches. A replica that does not reach the owner counts alone, with its part of the limit, and an owner that does not
// have all replicas gives the part of those that it has. So the parts never add up to more than the limit, but for one request
// that each replica may let in at once, whoever is cut off from whom. This package knows no network and no cluster. Package peers connects the replicas.
//
//	bucket.go  the arithmetic of one limit
//	ring.go    who the replicas are, and which of them owns a key
//	key.go     what is counted together, as a keyed hash
//	ledger.go  what is known of each key, in bounded memory
//	quota.go   Take, which decides about a request
//	answer.go  what the owner of a key does, and what its answer changes
package quota
