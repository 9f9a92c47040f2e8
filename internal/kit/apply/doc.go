// Package apply makes children as desired by server-side apply. Where they already are, it
// sends nothing.
//
// One Applier has one field manager. It applies only the fields of the configuration that it
// is given. Before it sends anything it compares that configuration with the cached object.
// There is no request when the fields that the field manager owns there are exactly the
// desired ones, with exactly the desired values. So a steady state costs no write and no
// read, after a restart too. Defaults cannot fool the comparison: nobody owns them. A field
// that somebody else took over or removed cannot escape it.
//
// An object of the same name that the owner does not control is never touched. Items that
// others have added to a list stay. Only one that has the unique name of a desired item goes:
// the API server would refuse the two side by side.
//
// An owner may be in a namespace, and then its children are beside it. Or it is in none, and then they may be in any, or in
// none, too.
//
//	apply.go        Applier: makes a child as desired, deletes it, and whose it is
//	compare.go      comparing a child with what is desired
//	drift.go        whether a child differs from what is desired
//	settled.go      remembering which children are as desired
//	repair.go       undoing what somebody changed, and telling whose change it was
//	altered.go      children that the API server changes after each write
//	clash.go        items of a list with the same name and another key
//	create_only.go  children that are never changed, such as Jobs
//	list.go         a list of children, of which others are deleted
//	adopt.go        taking over an object that nobody controls
//	subject.go      the name and namespace of a child, as code and messages need them
//	load.go         reading a child from the cache
//	fresh.go        not writing because of a stale cache
//	replicas.go     the number of pods while an autoscaler owns it
package apply
