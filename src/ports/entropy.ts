/** The only source of randomness. Seedable only in the sandbox. */
export interface Entropy {
  bytes(length: number): Uint8Array;
}
