// Package apply makes children true by server-side apply, at no cost when they
// already are.
//
// One Applier owns one field manager. It states only the fields of the apply
// configuration that it is given, and before it sends anything it compares that
// configuration with the cached object: when the fields that the field manager owns
// there are exactly the stated ones with exactly the stated values, there is no
// request. So a steady state costs no write and no read, after a restart too, and
// the comparison can neither be fooled by defaults (they are owned by nobody) nor
// miss a field that somebody else took over or removed.
//
// An object of the same name that the owner does not control is never touched. Items that
// others have added to a list stay, but for one that has the unique name of a stated item:
// the API server would refuse the two side by side.
package apply
