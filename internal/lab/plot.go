package lab

import (
	"bytes"
	"fmt"
)

// The picture of the overload bench, in points.
const (
	plotWidth  = 380
	plotHeight = 240
	plotMargin = 48
)

// plot draws the goodput and the success of high priority over the offered
// load, for each interface without and with control, as SVG.
func plot(stages []Stage) []byte {
	var names []string
	for _, s := range stages {
		if len(names) == 0 || names[len(names)-1] != s.Interface {
			names = append(names, s.Interface)
		}
	}
	var b bytes.Buffer
	width, height := 2*(plotWidth+plotMargin)+plotMargin, len(names)*(plotHeight+2*plotMargin)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i, name := range names {
		y := plotMargin + i*(plotHeight+2*plotMargin)
		panel(&b, plotMargin, y, name+": served over the top rate", stages, name, func(s *Stage) float64 { return s.Share })
		panel(&b, 2*plotMargin+plotWidth, y, name+": success of high priority", stages, name, func(s *Stage) float64 { return s.HighSuccess })
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel draws one diagram of the open loop.
func panel(b *bytes.Buffer, x, y int, title string, stages []Stage, name string, value func(*Stage) float64) {
	const top, most = 1.2, 5.0
	at := func(factor, v float64) (float64, float64) {
		return float64(x) + factor/most*plotWidth, float64(y) + plotHeight*(1-min(v, top)/top)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x, y-12, title)
	for v := 0.0; v <= top; v += .2 {
		_, line := at(0, v)
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.1f</text>`+"\n", x, line, x+plotWidth, x-6, line+4, v)
	}
	for f := 0.0; f <= most; f++ {
		col, _ := at(f, 0)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f×</text>`+"\n", col, y+plotHeight+16, f)
	}
	for i, control := range []bool{false, true} {
		color := [...]string{"#c0392b", "#1f77b4"}[i]
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, color)
		for j := range stages {
			if s := &stages[j]; s.Interface == name && s.Loop == "open" && s.Control == control {
				px, py := at(s.Factor, value(s))
				fmt.Fprintf(b, "%.1f,%.1f ", px, py)
			}
		}
		fmt.Fprintf(b, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", x+plotWidth-90, y+16+16*i, color, [...]string{"without control", "with control"}[i])
	}
}
