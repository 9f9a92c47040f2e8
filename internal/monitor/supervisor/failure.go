package supervisor

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errDisorder is an API server that goes back to a resource version it has passed, or says two things of one.
var errDisorder = errors.New("the resource versions are out of order")

// sinkError is an error of the sink. Nothing is known to be taken since its last checkpoint.
type sinkError struct{ cause error }

func (e sinkError) Error() string { return "the store does not take changes: " + e.cause.Error() }

func (e sinkError) Unwrap() error { return e.cause }

// pause is how one waits after an error.
type pause int

const (
	// usual is for what ends by itself: a connection, an overload. 0.1 s to 30 s.
	usual pause = iota
	// soon is for a kind that is about to be served. 50 ms to 1 s, and later 30 s.
	soon
	// patient is for what somebody must change: rights. 0.25 s, because rights are often given just after a definition is
	// made, to 60 s.
	patient
	// again is for a list that is needed though the last one is not old. 0.1 s to 30 s.
	again
)

// finding is what follows from the end of a list or a watch.
type finding struct {
	state  State  // empty when nothing is wrong
	reason string // why it is in that state
	relist string // why all objects must be listed, empty when a watch may go on
	pause  pause
	after  time.Duration // the API server asks to wait that long
	none   bool          // do not wait at all
}

// judge tells what follows from the error with which a list or a watch has ended. listing tells which, and known that the
// kind has been live before.
func judge(err error, listing, known bool) finding {
	found := finding{state: Failing}
	if err == nil || errors.Is(err, errInterrupted) {
		return finding{none: true}
	}
	found.reason = err.Error()
	var refusal apierrors.APIStatus
	switch {
	case errors.As(err, &sinkError{}):
	case errors.Is(err, errDisorder):
		found.relist = err.Error()
	case errors.Is(err, errGarbage), errors.Is(err, errSilent):
	case errors.As(err, &refusal):
		return judgeRefusal(err, listing, known)
	case known && !listing: // the connection
		found.state = Behind
	}
	return found
}

// judgeRefusal does the same for what the API server says.
func judgeRefusal(err error, listing, known bool) finding {
	found := finding{state: Failing, reason: err.Error()}
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		if listing {
			found.state, found.reason = Listing, "the list took too long and begins again"
			return found
		}
		return finding{state: Listing, reason: expired, relist: expired, none: true}
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		found.relist = "the API server is at an older state than the store"
	case apierrors.IsBadRequest(err) && !listing:
		found.relist = "the API server does not accept the resource version of the store"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err):
		found.state, found.pause = Refused, patient
	case apierrors.IsNotFound(err):
		found.pause = soon
		if !known {
			found.state, found.reason = Pending, "it is not served yet"
		} else {
			found.reason = "it is not served"
		}
	case apierrors.IsTooManyRequests(err):
		// An API server that makes itself ready for a definition that is new or was edited says so with a Status, from behind its
		// doors. One that is overloaded, or ends, refuses at its doors, without one.
		found.state = Pending
		if known {
			found.state = Behind
		}
		if !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			found.pause = soon
			return found // it asks to wait for a second, and is mostly ready long before
		}
	}
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		found.after = min(time.Duration(seconds)*time.Second, maxUsual)
	}
	return found
}

const (
	// expired is why objects are listed when changes are not kept any more.
	expired = "the API server has forgotten the changes since then"
	// expiredByEdit is the same when that is because the definition was edited. Such a gap is a second or two.
	expiredByEdit = "its definition was edited, and the API server has forgotten the changes since then"
	// editMatters is how long after an edit it counts as the reason.
	editMatters = time.Minute
)

const (
	firstUsual, maxUsual     = 100 * time.Millisecond, 30 * time.Second
	firstSoon, maxSoon       = 50 * time.Millisecond, time.Second
	firstPatient, maxPatient = 250 * time.Millisecond, time.Minute
	// soonTries is after how many answers a kind does not count as about to be served any more: half a minute.
	soonTries = 40
)

// pace knows how often one has waited already, and so how long to wait next. The zero value is ready.
type pace struct{ waits [4]int }

// next returns how long to wait. It is up to half shorter by chance, so that many kinds do not ask at the same time.
func (p *pace) next(f finding) time.Duration {
	if f.none {
		return 0
	}
	tries := p.waits[f.pause]
	p.waits[f.pause]++
	wait := time.Duration(0)
	switch f.pause {
	case usual, again:
		wait = grown(firstUsual, maxUsual, 2, tries)
	case patient:
		wait = grown(firstPatient, maxPatient, 2, tries)
	case soon:
		wait = grown(firstSoon, maxSoon, 1.2, tries)
		if tries > soonTries {
			wait = maxUsual
		}
	}
	wait -= time.Duration(rand.Float64() * float64(wait) / 2)
	return max(wait, f.after)
}

// reset forgets what failed, after something was read.
func (p *pace) reset() { p.waits[usual], p.waits[soon], p.waits[patient] = 0, 0, 0 }

// calm forgets everything, after a watch that lived for long.
func (p *pace) calm() { p.waits = [4]int{} }

// grown returns first * factor^tries, at most limit.
func grown(first, limit time.Duration, factor float64, tries int) time.Duration {
	return time.Duration(min(float64(first)*math.Pow(factor, float64(tries)), float64(limit)))
}
