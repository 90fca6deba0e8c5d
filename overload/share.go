package overload

import "sync/atomic"

// whole is the share that stands for all.
const whole = 10000

// share is a part of a stream in ten-thousandths.
type share uint16

// picker refuses a share of a stream. In every stretch of whole/share requests
// it refuses exactly one, at a place that cannot be foretold: over time the
// share is exact, and no regular pattern of senders meets it more often than
// others.
type picker struct{ n atomic.Uint64 }

// pick reports whether the next of the stream is one of the share.
func (p *picker) pick(s share) bool {
	switch {
	case s == 0:
		return false
	case s >= whole:
		return true
	}
	n := p.n.Add(1) - 1
	if s <= whole/2 {
		return chosen(n, uint64(s))
	}
	return !chosen(n, uint64(whole-s))
}

// chosen reports whether n is the chosen one of its stretch.
func chosen(n, s uint64) bool {
	i := n * s / whole
	first := (i*whole + s - 1) / s
	next := ((i+1)*whole + s - 1) / s
	return n == first+scramble(i)%(next-first)
}

// scramble spreads numbers over all 64 bits (the finisher of SplitMix64).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// lowestFirst spreads a reduction over priorities, lowest (largest number)
// first: the share of each priority that is refused so that the sum is the
// given part of all. arrivals is how many came of each (TS 29.500 §6.4.3.4.2).
func lowestFirst(arrivals *[priorities]float64, reduction float64) (shares [priorities]share) {
	var total float64
	for _, n := range arrivals {
		total += n
	}
	rest := total * min(max(reduction, 0), 1)
	if rest == 0 {
		return shares
	}
	for p := priorities - 1; p >= 0 && rest > 0; p-- {
		n := arrivals[p]
		if n <= rest {
			// What did not come in the last sample is shed, too, should it
			// come now.
			shares[p] = whole
			rest -= n
			continue
		}
		shares[p] = share(rest / n * whole)
		rest = 0
	}
	return shares
}
