package health

import (
	"slices"
	"strings"
	"unicode"
)

// Class is what a condition type says about an object.
type Class string

// The classes. A condition type of no class decides nothing.
const (
	// ClassReady: True tells that the whole object is well. False means not yet, and is a failure when its reason says so, or when
	// it lasts.
	ClassReady Class = "ready"
	// ClassOutcome: True tells that the object has ended well, False that it has failed.
	ClassOutcome Class = "outcome"
	// ClassCompletion: True tells that the object has ended well, False that it has not ended.
	ClassCompletion Class = "completion"
	// ClassGate: False is a failure. True says nothing about the whole.
	ClassGate Class = "gate"
	// ClassPart: like ClassReady, of a part of the object. So True says nothing about the whole.
	ClassPart Class = "part"
	// ClassBad: True is a failure. False says nothing about the whole.
	ClassBad Class = "bad"
	// ClassBusy: True tells that the controller is at work. False says nothing about the whole.
	ClassBusy Class = "busy"
	// ClassSuspended: True tells that the controller leaves the object alone, because it was told to.
	ClassSuspended Class = "suspended"
	// ClassIgnored: the condition says nothing about health. Profiles use it for types that mean something else elsewhere.
	ClassIgnored Class = "ignored"
)

// ClassTypes are condition types with the same meaning.
type ClassTypes struct {
	// Class is the meaning.
	Class Class
	// Types are the condition types.
	Types []string
	// Suffixes are last words of condition types, such as Pressure of MemoryPressure.
	Suffixes []string
}

// Polarity lists the condition types that have a meaning of their own, whatever the kind. The order is that in which classes
// are asked when several conditions lead to the same state.
func Polarity() []ClassTypes {
	return []ClassTypes{
		{Class: ClassSuspended, Types: []string{"Paused", "Suspended", "Hibernated", "ReconciliationPaused"}},
		{Class: ClassOutcome, Types: []string{"Succeeded", "Successful"}},
		{Class: ClassReady, Types: []string{
			"Ready", "Available", "Healthy", "Programmed", "Established", "Reconciled", "Applied", "Deployed", "Installed", "Released",
			"Bound", "Running", "Online", "Operational", "Connected",
		}},
		{Class: ClassGate, Types: []string{"Accepted", "ResolvedRefs", "Valid", "Validated", "NamesAccepted", "Admitted"}},
		{
			Class:    ClassPart,
			Types:    []string{"Synced", "Initialized", "Scheduled", "Reachable", "UpToDate", "InSync", "Synchronized"},
			Suffixes: []string{"Ready", "Available", "Healthy", "Synced", "Succeeded", "Reachable", "Reconciled", "Synchronized", "Applied"},
		},
		{Class: ClassCompletion, Types: []string{"Complete", "Completed", "Finished", "Done"}},
		{
			Class: ClassBad,
			Types: []string{
				"Failed", "Failure", "Stalled", "Degraded", "Error", "Errored", "ErrorOccurred", "Unhealthy", "NotReady", "Unavailable", "Blocked",
				"Conflicted", "Invalid", "Denied", "Expired", "Crashed", "Unreachable", "Unschedulable", "Misconfigured", "Rejected", "PartiallyInvalid", "InvalidSpec", "Orphan",
			},
			Suffixes: []string{
				"Failed", "Failure", "Stalled", "Degraded", "Error", "Errored", "Unhealthy", "NotReady", "Unavailable", "Blocked", "Pressure",
			},
		},
		{Class: ClassBusy, Types: []string{
			"Progressing", "Reconciling", "Updating", "Upgrading", "Installing", "Provisioning", "Creating", "Deploying", "Scaling", "ScalingUp",
			"ScalingDown", "Pending", "Initializing", "Issuing", "Migrating", "RollingOut", "Starting", "Restarting", "Recovering", "Remediating",
			"Restoring", "Resizing", "Deleting",
		}},
	}
}

// These are Polarity, by type and by suffix.
var classOfType, classOfSuffix = indexPolarity()

type suffixClass struct {
	suffix string
	class  Class
}

func indexPolarity() (types map[string]Class, suffixes []suffixClass) {
	types = map[string]Class{}
	for _, entry := range Polarity() {
		for _, name := range entry.Types {
			types[name] = entry.Class
		}
		for _, suffix := range entry.Suffixes {
			suffixes = append(suffixes, suffixClass{suffix, entry.Class})
		}
	}
	// NotReady comes before Ready.
	slices.SortStableFunc(suffixes, func(a, b suffixClass) int { return len(b.suffix) - len(a.suffix) })
	return types, suffixes
}

// classOf returns the class of a condition type. Some controllers put a domain before the type, as in example.com/Ready.
func classOf(conditionType string) Class {
	name := conditionType[strings.LastIndexByte(conditionType, '/')+1:]
	if class, ok := classOfType[name]; ok {
		return class
	}
	for _, entry := range classOfSuffix {
		if strings.HasSuffix(name, entry.suffix) {
			return entry.class
		}
	}
	return ""
}

// rank orders the classes as Polarity does.
func (c Class) rank() int {
	return slices.Index([]Class{ClassSuspended, ClassOutcome, ClassReady, ClassGate, ClassPart, ClassCompletion, ClassBad, ClassBusy}, c)
}

// isWhole reports whether a condition of the class tells, when True, that the whole object is well.
func (c Class) isWhole() bool { return c == ClassOutcome || c == ClassReady || c == ClassCompletion }

// isGood reports whether True is the good status.
func (c Class) isGood() bool { return c.isWhole() || c == ClassGate || c == ClassPart }

// These words of a reason tell that something has failed, or that somebody is at work.
var (
	errorWords = wordSet(`err error errors errored fail fails failed failing failure failures invalid denied forbidden unauthorized
		unauthenticated refused rejected conflict timeout timedout exceeded exhausted expired lost crash crashed crashing backoff evicted
		killed unsupported unhealthy degraded misconfigured malformed missing unreachable aborted cancelled canceled broken corrupt
		corrupted cannot unable stalled blocked mismatch duplicate illegal`)
	busyWords = wordSet(`progress progressing pending creating waiting reconciling provisioning initializing initialising starting updating
		upgrading installing deploying scaling issuing running rolling rollout queued processing syncing deleting terminating restoring
		migrating scheduled`)
	doneWords = wordSet("completed complete succeeded success finished done")
	// afterNot are words that tell of a failure after "not".
	afterNot = wordSet("found exist exists permitted allowed supported authorized accepted")
	nots     = wordSet("not no non without doesnot")
	// restWords are last words of a reason that tell that somebody wanted it so.
	restWords = wordSet("paused suspended hibernated deferred")
	notYet    = wordSet("never yet until before nothing")
)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// ErrorWords and BusyWords are the words of a reason that tell of a failure, and of work.
func ErrorWords() []string { return sorted(errorWords) }

// BusyWords are the words of a reason that tell that somebody is at work.
func BusyWords() []string { return sorted(busyWords) }

// RestWords are the last words of a reason that tell that somebody wanted it so.
func RestWords() []string { return sorted(restWords) }

// DoneWords are the words of a reason that tell that the work is done.
func DoneWords() []string { return sorted(doneWords) }

func sorted(set map[string]bool) []string {
	var list []string
	for word := range set {
		list = append(list, word)
	}
	slices.Sort(list)
	return list
}

// tone is what a reason says.
type tone int

const (
	toneNeutral tone = iota
	toneDone
	toneBusy
	toneError
)

// toneOf reads a reason. An error counts more than work, so CreatingFailed is an error. A word after not or no does not count,
// so NoErrors is none. Only the last word tells of an end, and only where nothing is negated.
func toneOf(reason string) tone {
	result := toneNeutral
	negated, whole := false, true
	words := camelWords(reason)
	for i, word := range words {
		switch {
		case negated && afterNot[word], !negated && errorWords[word]:
			return toneError
		case !negated && busyWords[word]:
			result = toneBusy
		case whole && i == len(words)-1 && doneWords[word] && result == toneNeutral:
			result = toneDone
		}
		negated = nots[word]
		whole = whole && !negated && !notYet[word]
	}
	return result
}

// isRest reports whether a reason is a word of what is suspended, or ends with one.
func isRest(reason string) bool {
	words := camelWords(reason)
	negated := slices.ContainsFunc(words, func(word string) bool { return nots[word] || notYet[word] })
	return !negated && len(words) > 0 && (restWords[words[len(words)-1]] || wordState(reason) == stateSuspended)
}

// camelWords splits a reason such as OOMKilled, ErrImagePull or build-failed into words in lower case.
func camelWords(reason string) []string {
	var words []string
	runes := []rune(cutValue(reason))
	start := 0
	end := func(i int) {
		if i > start {
			words = append(words, strings.ToLower(string(runes[start:i])))
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
			start = i
		}
	}
	end(len(runes))
	return words
}

// stateSuspended is what the words of PhaseWords mean that tell of an object that is left alone. The verdict is Unknown, with
// ReasonSuspended.
const stateSuspended = State(ReasonSuspended)

// PhaseWords is what the words of status.phase and status.state mean.
type PhaseWords struct {
	// State is what they mean.
	State State
	// Words are in lower case, without blanks, - and _.
	Words []string
}

// Phases lists the words of status.phase and status.state that are known.
func Phases() []PhaseWords {
	return []PhaseWords{
		{stateSuspended, []string{"paused", "suspended", "hibernated", "stopped", "idle", "scaledtozero"}},
		{Failed, []string{
			"failed", "failure", "failing", "error", "errored", "degraded", "unhealthy", "crashed", "crashloopbackoff", "invalid", "rejected", "denied",
			"lost", "expired", "unavailable", "aborted", "cancelled", "canceled", "offline", "down", "broken", "stalled", "blocked", "timeout", "timedout",
			"red", "configerror",
		}},
		{Progressing, []string{
			"pending", "creating", "provisioning", "progressing", "inprogress", "initializing", "initialising", "starting", "updating", "upgrading",
			"reconciling", "deploying", "installing", "scaling", "waiting", "queued", "restarting", "deleting", "terminating", "migrating", "restoring",
			"new", "processing", "planning", "syncing", "notready", "unready", "resizing", "scheduling",
			"yellow", "reconfiguring", "recovering", "failingover", "promoting", "finalising", "finalizing", "expanding", "applyingchanges", "migratingdata",
		}},
		{Healthy, []string{
			"ready", "running", "active", "available", "healthy", "bound", "succeeded", "success", "successful", "complete", "completed", "done",
			"finished", "deployed", "installed", "online", "up", "ok", "synced", "insync", "provisioned", "established", "applied", "operational",
			"connected", "green",
		}},
	}
}

var stateOfWord = indexPhases()

func indexPhases() map[string]State {
	states := map[string]State{}
	for _, entry := range Phases() {
		for _, word := range entry.Words {
			states[word] = entry.State
		}
	}
	return states
}

// doneStates are words of phases that tell that the work has ended well.
var doneStates = []string{"succeeded", "success", "successful", "complete", "completed", "done", "finished"}

// wordState returns what a phase means, and Unknown for a word that is not known.
func wordState(word string) State {
	if state, ok := stateOfWord[plainWord(word)]; ok {
		return state
	}
	return Unknown
}

func plainWord(word string) string {
	word = word[:min(len(word), 64)]
	// Some say what is wrong after the word.
	word, _, _ = strings.Cut(word, ",")
	word, _, _ = strings.Cut(word, ":")
	return plain.Replace(strings.ToLower(word))
}

var plain = strings.NewReplacer(" ", "", "-", "", "_", "")

// absences are words that tell that something does not run, which is no failure of what is suspended.
var absences = []string{"notready", "unready", "unavailable", "unreachable", "unhealthy", "offline", "down"}

// isAbsence reports whether a condition type, or a word, says no more than that something does not run.
func isAbsence(name string) bool {
	word := plainWord(name)
	return slices.ContainsFunc(absences, func(absence string) bool { return strings.HasSuffix(word, absence) })
}
