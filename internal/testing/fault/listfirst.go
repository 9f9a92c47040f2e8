package fault

import (
	toolscache "k8s.io/client-go/tools/cache"
)

// listFirst is listed before it is watched, so that the list can be of the past.
type listFirst struct{ *toolscache.ListWatch }

func newListFirst(list toolscache.ListWithContextFunc, watch toolscache.WatchFuncWithContext) listFirst {
	return listFirst{&toolscache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch}}
}

// IsWatchListSemanticsUnSupported tells the reflector so.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }
