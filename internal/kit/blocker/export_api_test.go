//go:build apitest

package blocker

// Watched is how many objects are watched.
func (w *Watches) Watched() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.watched)
}
