package recorder

import (
	"container/heap"
	"sync"
	"time"
)

// dueList holds when time alone changes how objects do: one time for an object, however often it is written. Few objects have one.
type dueList struct {
	mutex sync.Mutex
	heap  dueHeap
	items map[objectKey]*dueItem
	woken chan struct{}
}

type dueItem struct {
	at    time.Time
	key   objectKey
	index int
}

type dueHeap []*dueItem

// Len implements heap.Interface, and so do the others.
func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, k int) bool { return h[i].at.Before(h[k].at) }
func (h dueHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	item := x.(*dueItem)
	item.index = len(*h)
	*h = append(*h, item)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}

// set says when an object is to be judged again, in place of what was said before. Zero: never.
func (d *dueList) set(key objectKey, at time.Time) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	item := d.items[key]
	switch {
	case at.IsZero() && item == nil:
		return
	case at.IsZero():
		heap.Remove(&d.heap, item.index)
		delete(d.items, key)
		return
	case item != nil:
		item.at = at
		heap.Fix(&d.heap, item.index)
	default:
		if d.items == nil {
			d.items = map[objectKey]*dueItem{}
		}
		item = &dueItem{at: at, key: key}
		d.items[key] = item
		heap.Push(&d.heap, item)
	}
	if d.heap[0] == item {
		select {
		case d.woken <- struct{}{}:
		default:
		}
	}
}

// next returns an object whose time has come, or how long to wait for the next one.
func (d *dueList) next(now time.Time) (key objectKey, wait time.Duration, found bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.heap) == 0 {
		return objectKey{}, time.Hour, false
	}
	first := d.heap[0]
	if first.at.After(now) {
		return objectKey{}, first.at.Sub(now), false
	}
	heap.Pop(&d.heap)
	delete(d.items, first.key)
	return first.key, 0, true
}
