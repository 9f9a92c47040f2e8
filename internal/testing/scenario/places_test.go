package scenario

import "testing"

func TestWhoHasNotBegunWaitsForAPlace(t *testing.T) {
	places := NewPlaces(1)
	first, second, third := places.For(), places.For(), places.For()
	first.Take()
	first.Take() // it has it

	begun := make(chan struct{})
	go func() {
		third.Take()
		close(begun)
	}()
	// Who has begun goes on beside the first.
	second.busy(true)
	first.Leave()
	first.Leave() // it has none
	select {
	case <-begun:
		t.Error("it begins though the one place is taken")
	default:
	}
	second.busy(false)
	<-begun
	third.Leave()
	if places.taken != 0 {
		t.Errorf("%d places are taken after all have left", places.taken)
	}
}
