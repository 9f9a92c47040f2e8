package watch

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/text"
)

// Bounds of the problems of a document. Many tenants may share a gateway. If one of them
// could make the document too long, the operator would not know what is served of the others.
const (
	maxOfObject     = 16
	maxProblems     = 1000
	maxProblemBytes = 256 << 10
	maxMessage      = 1 << 10
	maxName         = 512 // of an object, or a field
	// maxLogged is how many new problems are logged at once.
	maxLogged = 100
)

// noRoom is the message of a problem that must be told, but not how.
const noRoom = "there is no room to say more, because there are too many problems"

// listed is a problem that may be told.
type listed struct {
	document.Problem

	// stands is for how many problems it stands.
	stands int
	// needed: a condition is made from it.
	needed bool
	// first: it is the first of its object.
	first bool
	told  bool
}

// boundProblems leaves out problems that are too many, and says how many. The order stays. A
// condition must not be better than it is for what is left out: so the first problem of each
// route of an APIGateway is always told, and the first with each reason of everything else. An
// APIGateway has at most 1,000 routes. Routes of the Gateway API are judged by their digests.
func boundProblems(problems []document.Problem) []document.Problem {
	list := boundObjects(problems)
	size, count := tellNeeded(list)
	size, count = tellRest(list, true, size, count) // a word of each object before more of any
	tellRest(list, false, size, count)
	var told []document.Problem
	var last *document.Problem
	left := 0
	for i := range list {
		one := &list[i]
		if one.told {
			told = append(told, one.Problem)
			continue
		}
		left += one.stands
		if last == nil {
			// Its route has a problem before it, so this is no news of the route.
			last = &document.Problem{Route: one.Route, Field: "spec", Reason: one.Reason}
		}
	}
	if last != nil {
		last.Message = moreProblems(left)
		told = append(told, *last)
	}
	return told
}

// tellRest marks more problems, those that are the first of their object or the others, until
// there is no room for another one. It returns the size and the number of what is told.
func tellRest(list []listed, first bool, size, count int) (sizeThen, countThen int) {
	for i := range list {
		one := &list[i]
		if one.told || one.first != first {
			continue
		}
		more := sizeOf(one.Problem)
		// What says how many are left out needs room, too.
		if count+2 > maxProblems || size+more+maxMessage > maxProblemBytes {
			break
		}
		one.told = true
		size, count = size+more, count+1
	}
	return size, count
}

// tellNeeded marks the problems that are told in any case. If they do not fit, some are told
// without a message. It returns the size and the number of what is told.
func tellNeeded(list []listed) (size, count int) {
	short := func(p document.Problem) document.Problem {
		return document.Problem{Route: p.Route, Field: "spec", Reason: p.Reason, Message: noRoom}
	}
	rest := 0 // what the next ones need at the least
	for i := range list {
		if list[i].needed {
			rest += sizeOf(short(list[i].Problem))
		}
	}
	for i := range list {
		one := &list[i]
		if !one.needed {
			continue
		}
		shortest := short(one.Problem)
		rest -= sizeOf(shortest)
		if size+sizeOf(one.Problem)+rest+maxMessage > maxProblemBytes {
			one.Problem = shortest
		}
		one.told = true
		size, count = size+sizeOf(one.Problem), count+1
	}
	return size, count
}

// problemObject is what a problem is about.
type problemObject struct {
	route       int
	name, field string
}

func objectOf(p document.Problem) problemObject {
	field, _, _ := strings.Cut(p.Field, ": ") // of a Gateway's objects it is followed by the rule
	return problemObject{p.Route, p.Name, field}
}

// boundObjects leaves out what is too much of one object, and too long.
func boundObjects(problems []document.Problem) []listed {
	var list []listed
	count, decisive := map[problemObject]int{}, document.Decisive(problems)
	left, after := map[problemObject]listed{}, map[problemObject]int{}
	for i, p := range problems {
		p.Name, p.Field, p.Message = text.Cut(p.Name, maxName), text.Cut(p.Field, maxName), text.Cut(p.Message, maxMessage)
		of := objectOf(p)
		needed, first := decisive[i], count[of] == 0
		count[of]++
		if !needed && count[of] > maxOfObject {
			more, found := left[of]
			if !found {
				more.Problem = document.Problem{Route: p.Route, Name: p.Name, Field: of.field, Reason: p.Reason}
			}
			more.stands++
			left[of] = more
			continue
		}
		after[of] = len(list)
		list = append(list, listed{Problem: p, stands: 1, needed: needed, first: first})
	}
	var bounded []listed
	for i, one := range list {
		bounded = append(bounded, one)
		of := objectOf(one.Problem)
		if more, cut := left[of]; cut && after[of] == i {
			more.Message = moreProblems(more.stands) + " of it"
			bounded = append(bounded, more)
		}
	}
	return bounded
}

// sizeOf is how many bytes of a document a problem takes.
func sizeOf(p document.Problem) int {
	written, err := json.Marshal(p)
	if err != nil {
		return maxProblemBytes // there is no room for what cannot be written
	}
	return len(written) + 1 // with a comma
}

// logProblems logs the problems that were not there before.
func logProblems(log *slog.Logger, before, now []document.Problem) {
	known := make(map[document.Problem]bool, len(before))
	for _, problem := range before {
		known[problem] = true
	}
	logged, more := 0, 0
	for _, problem := range now {
		switch {
		case known[problem]:
		case logged == maxLogged:
			more++
		default:
			logged++
			log.Warn("not served as it is written", "name", problem.Name, "field", problem.Field, "reason", problem.Reason, "message", problem.Message)
		}
	}
	if more > 0 {
		log.Warn("more is not served as it is written", "problems", more)
	}
}

// moreProblems says how many problems are not told one by one.
func moreProblems(n int) string {
	if n == 1 {
		return "there is 1 more problem"
	}
	return fmt.Sprintf("there are %d more problems", n)
}
