//go:build monitorbench && monitorplant

package monitorbench

// planted tells that the monitor in this binary forgets changes.
const planted = true
