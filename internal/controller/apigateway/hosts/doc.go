// Package hosts records which APIGateway a host belongs to, where several are exposed at the same place.
//
// A host belongs to who had it first, until that one gives it up. So it cannot go by anything that its user writes, nor by
// the age of objects: an old APIGateway may ask for the host of a younger one. Each host has a record, a Lease in the
// operator's own namespace, which nobody else writes. The API server makes it once, and refuses a change of a version that
// is not the last one. So of two that ask at the same time one gets the host, however many operators there are.
//
//	record.go   what a record says, and who may have a host; pure
//	book.go     reading and writing the records
//	present.go  the first records, of an installation that had none
package hosts
