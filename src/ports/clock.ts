/** The only source of time; other code does not read the system clock. Sandbox clocks can be frozen and set. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
}
