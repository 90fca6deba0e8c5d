// Package storagetest is the contract of the storage engines, executable: Run
// holds what every engine promises to package bsf, races included.
package storagetest
