package scenario

import (
	"testing"
	"testing/synctest"
)

func TestWhoHasNotBegunWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(1)
		first := places.Take()
		first.Take() // it has it

		var third *Place
		go func() { third = places.Take() }()
		synctest.Wait()
		second := &Place{of: places}
		// Who has begun goes on beside the first.
		second.busy(true)
		first.Leave()
		first.Leave() // it has none
		if synctest.Wait(); third != nil {
			t.Error("it begins though the one place is taken")
		}
		second.busy(false)
		if synctest.Wait(); third == nil {
			t.Fatal("it does not begin though there is a place")
		}
		third.Leave()
		if places.taken != 0 {
			t.Errorf("%d places are taken after all have left", places.taken)
		}
	})
}
