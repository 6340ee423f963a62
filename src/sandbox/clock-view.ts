import type { MovableClock } from './control-plane.ts';
import type { SandboxClock } from './generated/schemas.ts';

/** The clock as the control plane shows it. */
export function clockView(clock: MovableClock): SandboxClock {
  const nowMs = clock.now();
  return { now_ms: nowMs, now: new Date(nowMs).toISOString(), frozen: clock.isFrozen };
}
