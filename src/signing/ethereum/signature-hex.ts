/** The signature of an envelope as 0x hex of r || s || parity (0 or 1); undefined when it is unsigned. */
export function signatureHex(signature: {
  readonly r?: string | undefined;
  readonly s?: string | undefined;
  readonly yParity?: number | undefined;
}): string | undefined {
  const { r, s, yParity } = signature;
  if (r === undefined || s === undefined) return undefined;
  return `0x${r.slice(2).padStart(64, '0')}${s.slice(2).padStart(64, '0')}0${yParity ?? 0}`;
}
