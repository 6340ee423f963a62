import type { ControllableClock } from './control-plane.ts';
import type { SandboxClock } from './generated/schemas.ts';

/**
 * CHOICE: the clock can be set up to a century before the last instant that the contract's formats can represent,
 * 9999-12-31. Whatever is planned or expires after the time that was set can be represented as well.
 */
export const LAST_MS = Date.UTC(9900, 0, 1);

/** The control plane's representation of the clock. */
export function clockView(clock: ControllableClock): SandboxClock {
  const nowMs = clock.now();
  return { now_ms: nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen };
}
