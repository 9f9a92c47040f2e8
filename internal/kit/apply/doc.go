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
package apply
