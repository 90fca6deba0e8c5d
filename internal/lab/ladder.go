package lab

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// ladder draws messages between nodes as they happen, one a line, each node a
// column.
type ladder struct {
	mu    sync.Mutex
	w     io.Writer
	nodes []string
	lines int
	err   error
}

const (
	columnWidth = 14
	// headEvery is after how many lines the names stand again.
	headEvery = 40
)

// head prints the names of the nodes.
func (l *ladder) head() {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", 14))
	for _, n := range l.nodes {
		pad := columnWidth - len(n)
		b.WriteString(strings.Repeat(" ", pad/2) + n + strings.Repeat(" ", pad-pad/2))
	}
	l.print(strings.TrimRight(b.String(), " "))
}

func (l *ladder) print(line string) {
	if _, err := fmt.Fprintln(l.w, line); err != nil && l.err == nil {
		l.err = err
	}
}

func (l *ladder) column(node string) int {
	for i, n := range l.nodes {
		if n == node {
			return i
		}
	}
	return 0
}

// arrow draws a message with its label, and what it says on the right.
func (l *ladder) arrow(from, to, label, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, b := l.column(from), l.column(to)
	left, right := min(a, b), max(a, b)
	at := func(col int) int { return col*columnWidth + columnWidth/2 }
	line := []rune(strings.Repeat(" ", at(len(l.nodes)-1)+1))
	for i := range l.nodes {
		line[at(i)] = '│'
	}
	for x := at(left) + 1; x < at(right); x++ {
		line[x] = '─'
	}
	line[at(a)], line[at(b)] = '├', '│'
	if a > b {
		line[at(a)] = '┤'
		line[at(left)+1] = '◀'
	} else {
		line[at(right)-1] = '▶'
	}
	text := []rune(" " + label + " ")
	start := at(left) + (at(right)-at(left)-len(text))/2 + 1
	copy(line[start:at(right)-1], text)
	l.line(string(line), detail)
}

// note writes a line without an arrow.
func (l *ladder) note(node, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := []rune(strings.Repeat(" ", (len(l.nodes)-1)*columnWidth+columnWidth/2+1))
	for i, n := range l.nodes {
		line[i*columnWidth+columnWidth/2] = '│'
		if n == node {
			line[i*columnWidth+columnWidth/2] = '✗'
		}
	}
	l.line(string(line), detail)
}

func (l *ladder) line(drawing, detail string) {
	if l.lines%headEvery == 0 {
		l.head()
	}
	l.lines++
	l.print(fmt.Sprintf("%s %s%s  %s", time.Now().Format("15:04:05.000"), drawing,
		strings.Repeat(" ", max(0, len(l.nodes)*columnWidth-6-utf8.RuneCountInString(drawing))), detail))
}

// gap separates flows.
func (l *ladder) gap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print("")
}

// failure is the first error of writing.
func (l *ladder) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
