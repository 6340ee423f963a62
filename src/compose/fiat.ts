import { connectBridge } from '../adapters/bridge/connect.ts';
import { systemClock } from '../adapters/clock.ts';
import { noFiatProviders } from '../adapters/fiat-providers-none.ts';
import type { BridgeSettings } from '../config-fiat.ts';
import { hurryCustomers } from '../domain/money/fiat-customers/customer-snapshot.ts';
import type { Mount } from '../http/app.ts';
import { providerHints } from '../http/hints/provider-hints.ts';
import type { inUnitOf } from '../http/unit-of-work.ts';
import type { FiatProviders } from '../ports/fiat-providers.ts';
import type { Log } from '../ports/log.ts';

/** The configured fiat providers. */
export function fiatProvidersOf(settings: readonly BridgeSettings[], log: Log): FiatProviders {
  if (settings.length === 0) return noFiatProviders;
  return connectBridge(settings, { clock: systemClock, log });
}

/** The route for notifications, if a provider has a key that verifies them. */
export function hintsOf(
  settings: readonly BridgeSettings[],
  options: Omit<Parameters<typeof providerHints>[0], 'take' | 'clock'> & {
    readonly inUnit: ReturnType<typeof inUnitOf>;
  },
): readonly Mount[] {
  if (settings.every(({ webhookKey }) => webhookKey === undefined)) return [];
  return [
    providerHints({
      ...options,
      clock: systemClock,
      take: (source, hints) =>
        options.inUnit((em) => hurryCustomers(em, source, { hints, nowMs: systemClock.now() })),
    }),
  ];
}
