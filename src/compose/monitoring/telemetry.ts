import type { ServeConfig } from '../../config.ts';
import type { ServerMetrics } from '../../metrics/server-metrics.ts';
import { packageVersion } from '../../package-root.ts';
import type { Entropy } from '../../ports/entropy.ts';
import type { Log } from '../../ports/log.ts';
import type { Telemetry } from '../../telemetry/telemetry.ts';

/** Starts to send traces and metrics, if that is configured. Loaded only then. */
export async function telemetryFor(
  settings: ServeConfig['telemetry'],
  metrics: ServerMetrics | undefined,
  { entropy, log }: { readonly entropy: Entropy; readonly log: Log },
): Promise<Telemetry | undefined> {
  if (settings === undefined || metrics === undefined) return undefined;
  const { startTelemetry } = await import('../../telemetry/telemetry.ts');
  return startTelemetry({ ...settings, metrics, entropy, log, version: packageVersion() });
}
