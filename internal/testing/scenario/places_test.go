package scenario

import (
	"testing"
	"testing/synctest"
)

func TestWhoHasNotBegunWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(1)
		first, second, third := places.For(), places.For(), places.For()
		first.Take()
		first.Take() // it has it

		begun := false
		go func() {
			third.Take()
			begun = true
		}()
		synctest.Wait()
		// Who has begun goes on beside the first.
		second.busy(true)
		first.Leave()
		first.Leave() // it has none
		if synctest.Wait(); begun {
			t.Error("it begins though the one place is taken")
		}
		second.busy(false)
		if synctest.Wait(); !begun {
			t.Error("it does not begin though there is a place")
		}
		third.Leave()
		if places.taken != 0 {
			t.Errorf("%d places are taken after all have left", places.taken)
		}
	})
}
