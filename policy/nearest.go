package policy

// nearest gives the known word that a mistyped one was most likely meant to be; "" when none is close. A letter too many,
// too few, another one, or two exchanged count as one slip; one slip in three letters is close.
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	if len(word) < 3 {
		return ""
	}
	for _, k := range known {
		if n := slips(word, k); n < least || (n == least && best == "" && n <= max(1, len(word)/3)) {
			best, least = k, n
		}
	}
	return best
}

// slips counts them (optimal string alignment).
func slips(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
