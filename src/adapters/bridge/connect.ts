import type { BridgeSettings } from '../../config/fiat.ts';
import type { FiatProvider, FiatProviders } from '../../ports/fiat.ts';
import type { Clock, Log } from '../../ports/runtime.ts';
import { bridgeBankAccounts } from './bank-accounts.ts';
import { type BridgeClientOptions, createBridgeClient } from './client.ts';
import { bridgeCustomers, readBridgeHint } from './customers.ts';
import { bridgeDeposits, bridgeVirtualAccounts } from './deposits.ts';
import { bridgePayouts } from './payouts.ts';

interface BridgeWorld extends Pick<BridgeClientOptions, 'log' | 'limits'> {
  /** The system clock. */
  readonly clock: Clock;
  readonly log: Log;
}

/** Connects the provider `bridge`, in the configured environments. */
export function connectBridge(settings: readonly BridgeSettings[], world: BridgeWorld): FiatProviders {
  const environments = new Map(settings.map((each) => [each.environment, bridgeProvider(each, world)]));
  return {
    find: (provider, environment) => (provider === 'bridge' ? environments.get(environment) : undefined),
  };
}

function bridgeProvider(
  { environment, webhookKey, ...access }: BridgeSettings,
  world: BridgeWorld,
): FiatProvider {
  const client = createBridgeClient({ ...world, access });
  const { expectNews, depositsAfter } = bridgeDeposits(client, world.clock);
  return {
    // The service's sandbox accepts addresses of any network, but pays only on test networks.
    networks: environment === 'sandbox' ? 'test' : 'main',
    ...bridgeCustomers(client),
    ...bridgeBankAccounts(client),
    ...bridgeVirtualAccounts(client),
    ...bridgePayouts(client),
    depositsAfter,
    readHint(notification) {
      const hints = webhookKey && readBridgeHint(webhookKey, notification);
      if (hints?.some(({ kind }) => kind === 'virtual_account') === true) expectNews();
      return hints;
    },
  };
}
