//go:build e2e || change

package change

import (
	"fmt"
	"sync"
)

// extras are routes that come and go. One is asked for from when status calls it live,
// until the test begins to remove it.
type extras struct {
	mutex sync.Mutex
	live  []*extra
	made  int
}

// extra is one of them.
type extra struct {
	path  string
	using sync.WaitGroup
}

// next returns one with a path that none ever had. It is not asked for yet.
func (e *extras) next() *extra {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.made++
	return &extra{path: fmt.Sprintf("/extra-%d/", e.made)}
}

// add lets the clients ask for it.
func (e *extras) add(x *extra) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.live = append(e.live, x)
}

// use returns the path of one of them, until release. There is always one.
func (e *extras) use(n int) (path string, release func()) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	x := e.live[n%len(e.live)]
	x.using.Add(1)
	return x.path, x.using.Done
}

// count returns how many there are.
func (e *extras) count() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return len(e.live)
}

// take makes sure that nobody asks for one of them any more, and returns it.
func (e *extras) take(i int) *extra {
	e.mutex.Lock()
	x := e.live[i]
	e.live = append(e.live[:i:i], e.live[i+1:]...)
	e.mutex.Unlock()
	x.using.Wait()
	return x
}
