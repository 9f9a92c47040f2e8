package engine

import "testing"

func TestAMadeRepositoryIsOpen(t *testing.T) {
	options := inFolder(t)
	r, err := CreateAndOpen(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	kept(t, r, "run", tree(t))
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	options.ExpectedID = r.ID()
	restored(t, opened(t, options), "run")
}
