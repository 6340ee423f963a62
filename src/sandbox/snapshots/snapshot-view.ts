import type { SnapshotFacts } from '../control-plane.ts';
import type { SandboxSnapshot } from '../generated/schemas.ts';

/** The control plane's representation of a snapshot. */
export function snapshotView({ name, bytes, savedAtMs, nowMs, version }: SnapshotFacts): SandboxSnapshot {
  return { name, bytes, saved_at_ms: savedAtMs, now_ms: nowMs, version };
}
