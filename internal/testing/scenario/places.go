package scenario

import "sync"

// Places are for runs in which something is going on. Most runs only wait to see that nothing
// happens. That costs nothing, so many are in progress at a time. But when all are busy at
// once, each waits longer for the processors than it may take.
type Places struct {
	mu    sync.Mutex
	left  sync.Cond
	most  int
	taken int
}

// NewPlaces returns so many, at least one.
func NewPlaces(most int) *Places {
	p := &Places{most: max(1, most)}
	p.left.L = &p.mu
	return p
}

// Place is the place of one run, which it has or not. It is for one goroutine at a time.
type Place struct {
	of  *Places
	has bool
}

// Take waits for a place.
func (p *Places) Take() *Place {
	place := &Place{of: p}
	place.Take()
	return place
}

// Take waits for the place, unless the run has it.
func (p *Place) Take() {
	if p.has {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	for p.of.taken >= p.of.most {
		p.of.left.Wait()
	}
	p.of.taken++
	p.has = true
}

// Leave gives the place back, if the run has it.
func (p *Place) Leave() {
	if !p.has {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.taken--
	p.has = false
	p.of.left.Signal()
}

// busy leaves the place when the run is idle. When it is busy again it has the place at once,
// if need be beside all others: a running operator cannot be stopped. Only a run that has not
// begun yet can wait.
func (p *Place) busy(is bool) {
	if !is {
		p.Leave()
		return
	}
	if p.has {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.taken++
	p.has = true
}
