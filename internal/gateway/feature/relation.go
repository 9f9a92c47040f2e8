package feature

// Relation reports whether a client that a rule lets in would be let in by another rule too, and could do no more there, as far as
// one setting says. mine is the text of the setting of the rule, theirs that of the other. Empty: it is not set.
//
// It must answer for any text: what the list asks is what it says of one text and none.
//
// A request whose path can be read in more than one way is refused unless this holds for each reading and each setting.
type Relation func(mine, theirs string) bool

// Same is for a setting of which nobody has said more: both rules ask for the same.
func Same(mine, theirs string) bool { return mine == theirs }

// Restricts is for a setting that keeps clients out, or requests. The other rule may do without.
func Restricts(mine, theirs string) bool { return theirs == "" || mine == theirs }

// Widens is for a setting that lets clients do more. The rule itself may do without.
func Widens(mine, theirs string) bool { return mine == "" || mine == theirs }

// Nothing says in so many words that a setting keeps nobody out.
func Nothing(_, _ string) bool { return true }
