package custos

//go:generate go -C internal/generate run . --if-changed
