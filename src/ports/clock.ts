/** The one source of time. Sandbox clocks can be frozen and moved; nothing else reads the machine's clock. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
}
