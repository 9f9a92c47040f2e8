package hosts

import "slices"

// Present is an APIGateway that was there before there were records, with what it asks for.
type Present struct {
	Gateway Gateway
	Claims  []Claim
}

// found is what one record begins with.
type found struct {
	claim   Claim
	holders []Holder
}

// firstHolders are the holders that records begin with. A host belongs to the first one in the list, which has the order of
// age: that was the rule before there were records. It did not see that unknown parts overlap with others, so both go on.
func firstHolders(list []Present) []*found {
	var all []*found
	byHost := map[string]*found{}
	for _, present := range list {
		for _, claim := range present.Claims {
			at := byHost[claim.Index()]
			if at == nil {
				at = &found{claim: claim}
				byHost[claim.Index()] = at
				all = append(all, at)
			}
			taken := slices.ContainsFunc(at.holders, func(h Holder) bool { return h.Part == claim.Part })
			if !taken && len(at.holders) < maxHolders {
				at.holders = with(at.holders, claim.Part, present.Gateway)
			}
		}
	}
	return all
}
