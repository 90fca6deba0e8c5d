package lab

import (
	"context"
	"errors"
	"io"
)

var ErrUsage = errors.New("usage")

func Bench(ctx context.Context, args []string, stdout, stderr io.Writer) error { return nil }
