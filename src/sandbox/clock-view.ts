import type { ControllableClock } from './control-plane.ts';
import type { SandboxClock } from './generated/schemas.ts';

/** The control plane's representation of the clock. */
export function clockView(clock: ControllableClock): SandboxClock {
  const nowMs = clock.now();
  return { now_ms: nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen };
}
