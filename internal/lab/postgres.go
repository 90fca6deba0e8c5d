package lab

import (
	"context"
	"errors"
	"io"
)

func benchPostgres(context.Context, *options, io.Writer, io.Writer) error {
	return errors.New("not yet")
}
