package change

// maxAlign is how many pairs of items are compared to find which of two lists are the same. Of longer lists, what is the same at
// both ends is found, and the items between are paired by where they are.
const maxAlign = 10_000

// pair says that two items are the same.
type pair struct{ old, now int }

// align finds items that stayed the same in a list in which others came and went: the longest sequence of them. The last pair is
// the end of both lists.
func align(old, now []node) []pair {
	start := 0
	for start < len(old) && start < len(now) && old[start].equal(&now[start]) {
		start++
	}
	end := 0
	for end < len(old)-start && end < len(now)-start && old[len(old)-1-end].equal(&now[len(now)-1-end]) {
		end++
	}
	pairs := make([]pair, 0, start+end+1)
	for i := range start {
		pairs = append(pairs, pair{old: i, now: i})
	}
	for _, p := range longestCommon(old[start:len(old)-end], now[start:len(now)-end]) {
		pairs = append(pairs, pair{old: start + p.old, now: start + p.now})
	}
	for i := end; i > 0; i-- {
		pairs = append(pairs, pair{old: len(old) - i, now: len(now) - i})
	}
	return append(pairs, pair{old: len(old), now: len(now)})
}

// longestCommon finds the longest sequence of items that are in both lists in the same order, none if the lists are long.
func longestCommon(old, now []node) []pair {
	if len(old) == 0 || len(now) == 0 || len(old)*len(now) > maxAlign {
		return nil
	}
	oldNumbers, nowNumbers := number(old, now)
	width := len(now) + 1
	// length[i*width+j] is how long the sequence is after item i of old and item j of now.
	length := make([]uint16, (len(old)+1)*width)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if oldNumbers[i] == nowNumbers[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	var pairs []pair
	for i, j := 0, 0; i < len(old) && j < len(now); {
		switch {
		case oldNumbers[i] == nowNumbers[j]:
			pairs = append(pairs, pair{old: i, now: j})
			i++
			j++
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// number gives items that are the same the same number.
func number(old, now []node) (oldNumbers, nowNumbers []int) {
	numbers := map[string]int{}
	of := func(items []node) []int {
		result := make([]int, len(items))
		for i := range items {
			text := items[i].canonical()
			n, known := numbers[text]
			if !known {
				n = len(numbers)
				numbers[text] = n
			}
			result[i] = n
		}
		return result
	}
	return of(old), of(now)
}
