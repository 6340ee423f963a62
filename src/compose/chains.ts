import { connectBridge } from '../adapters/bridge/connect.ts';
import { connectChains } from '../adapters/chain-rpc/connect.ts';
import { noFiatProviders } from '../adapters/outside-services.ts';
import { merklRewards } from '../adapters/rewards.ts';
import { systemClock } from '../adapters/runtime.ts';
import { chainsOf } from '../adapters/sandbox-folder.ts';
import { routersOnChain } from '../adapters/swap-routers.ts';
import type { SandboxConfig } from '../config/config.ts';
import type { BridgeSettings } from '../config/fiat.ts';
import { expediteChecks } from '../domain/money/fiat-customers/customer-snapshot.ts';
import { assetsOf } from '../engine/assets/known-assets.ts';
import { chainOfCaip2, knownChains } from '../engine/assets/known-chains.ts';
import type { CardIssuers } from '../ports/cards.ts';
import type { Chains, Incentives, SwapRoutes, VaultRates } from '../ports/chains.ts';
import type { Exchange } from '../ports/exchange.ts';
import type { FiatProviders } from '../ports/fiat.ts';
import type { Services } from '../ports/operation-context.ts';
import type { DrawTransactionFault } from '../ports/requests.ts';
import type { Log } from '../ports/runtime.ts';
import type { CardControls } from '../sandbox/simulated/cards/issuers.ts';
import { SWAP_ROUTER_ADDRESS } from '../sandbox/simulated/chains/evm/contracts/addresses.ts';
import { openSimulatedChains, type SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../sandbox/simulated/fiat/providers.ts';
import type { Mount } from '../server/app.ts';
import { providerHints } from '../server/provider-hints.ts';
import type { inUnitOf } from '../server/unit-of-work.ts';

interface SandboxChains {
  readonly chains: Chains;
  /** The simulated chains, without the chains that have a real node. */
  readonly simulated: SimulatedChains;
  readonly exchange: Exchange;
  readonly fiatProviders: FiatProviders;
  readonly fiatControls: FiatControls;
  readonly cardIssuers: CardIssuers;
  readonly cardControls: CardControls;
  readonly incentives: Incentives;
  readonly vaultRates: VaultRates;
  readonly swapRoutes: SwapRoutes;
}

interface SandboxWorld extends Pick<Services, 'clock' | 'log' | 'ids'> {
  /** Returns the URL of a customer's hosted page at the simulated identity office. */
  pageOf(token: string): string;
  /** Returns the simulated card issuer's secret. */
  cardSecret(): Uint8Array;
  /** The initial state of simulated chains in memory. */
  readonly image?: Buffer | undefined;
  readonly drawFault: DrawTransactionFault;
  readonly observeNode?: ((caip2: string, durationMs: number, hasFailed: boolean) => void) | undefined;
  readonly observeDisagreement?: ((caip2: string) => void) | undefined;
}

/**
 * Creates the chains of a sandbox. Configured chains use real nodes. All others are simulated, and stored in the data
 * folder if there is one.
 */
export function sandboxChains(
  {
    dataFolder,
    confirmAfterMs,
    rpc,
    forks,
    forkFolder,
    swapRouters,
    rewards,
  }: Pick<
    SandboxConfig,
    'dataFolder' | 'confirmAfterMs' | 'rpc' | 'forks' | 'forkFolder' | 'swapRouters' | 'rewards'
  >,
  { clock, log, ids, pageOf, cardSecret, image, drawFault, observeNode, observeDisagreement }: SandboxWorld,
): SandboxChains {
  const file = dataFolder === undefined ? ':memory:' : chainsOf(dataFolder);
  const simulated = openSimulatedChains({
    ...{ file, image, clock, log, confirmAfterMs, drawFault, knownTokens: namedTokens },
    nativeSymbol: (caip2) => chainOfCaip2(caip2)?.native?.asset,
    forks,
    forkFolder,
  });
  // As on simulated chains, a deposit is reported as soon as a block includes it.
  const real = connectChains(
    rpc.map((endpoints) => ({ confirmations: 1, ...endpoints })),
    log,
    { namedTokens: tokensNamedOn, observe: observeNode, observeDisagreement },
  );
  const has = (caip2: string): boolean => real.find(caip2) === undefined && simulated.has(caip2);
  // CHOICE: on a chain that forks a real one, the sandbox's bank, exchange and card issuer have no money.
  const supports = (caip2: string): boolean => has(caip2) && !forks.some((fork) => fork.caip2 === caip2);
  const { prices } = simulated;
  // Both environments are simulated, independently of each other.
  const environments = ['sandbox', 'production'] as const;
  const shared = { ids, prices, pageOf, supports, environments };
  const fiat = simulated.fiat(shared);
  const cards = simulated.cards({ ...shared, secret: cardSecret });
  const chains: Chains = {
    find: (caip2) => real.find(caip2) ?? simulated.find(caip2),
    // A chain that now has a real node may have been simulated in this folder before.
    listing: async () => [
      ...(await simulated.used()).filter((caip2) => real.find(caip2) === undefined),
      ...((await real.listing?.()) ?? []),
    ],
  };
  const routerOf = (caip2: string): string | undefined =>
    supports(caip2) ? simulatedRouterOn(caip2) : swapRouters.get(caip2)?.router;
  const wrappedOf = (caip2: string): string | undefined =>
    supports(caip2) ? undefined : swapRouters.get(caip2)?.wrapped;
  const realRewards = merklRewards({ ...rewards, chains, log });
  return {
    chains,
    fiatProviders: fiat.providers,
    fiatControls: fiat.controls,
    cardIssuers: cards.issuers,
    cardControls: cards.controls,
    swapRoutes: routersOnChain({ chains, clock, routerOf, wrappedOf }),
    // The exchange does not support real chains, because the simulated exchange would not see deposits on them.
    exchange: simulated.exchange({ ids, prices, supports }),
    incentives: {
      rewards: (caip2, address) => (supports(caip2) ? simulated.earn : realRewards).rewards(caip2, address),
    },
    vaultRates: {
      rateOf: async (caip2, address) => (supports(caip2) ? simulated.earn.rateOf(caip2, address) : undefined),
    },
    simulated: { ...simulated, has },
  };
}

/** Returns the addresses of a chain's tokens that have a name in the API. */
export function tokensNamedOn(caip2: string): readonly string[] {
  return namedTokens()
    .filter((token) => token.caip2 === caip2)
    .map(({ address }) => address);
}

/**
 * Returns the router of a simulated chain; undefined if it has none.
 *
 * CHOICE: Tempo has no native asset, and therefore no swap router of this kind.
 */
function simulatedRouterOn(caip2: string): string | undefined {
  const isRouted = caip2.startsWith('eip155:') && chainOfCaip2(caip2)?.native !== undefined;
  return isRouted ? SWAP_ROUTER_ADDRESS : undefined;
}

/** Returns the tokens that have a name in the API, with their decimals. They exist from the start. */
function namedTokens() {
  return [false, true]
    .flatMap((isTestnet) => knownChains({ isTestnet }))
    .flatMap(assetsOf)
    .flatMap(({ chain: { caip2 }, tokenAddress: address, asset, decimals }) =>
      address === null ? [] : [{ caip2, address, symbol: asset.toUpperCase(), decimals }],
    );
}

/** Connects the configured fiat providers. */
export function fiatProvidersOf(settings: readonly BridgeSettings[], log: Log): FiatProviders {
  if (settings.length === 0) return noFiatProviders;
  return connectBridge(settings, { clock: systemClock, log });
}

/** Returns the route that receives notifications, if a provider has a key to verify them. */
export function hintsOf(
  settings: readonly BridgeSettings[],
  options: Omit<Parameters<typeof providerHints>[0], 'take' | 'clock'> & {
    /** Returns units of work on the database of each cell. Only one cell knows a given customer. */
    readonly units: () => readonly ReturnType<typeof inUnitOf>[];
  },
): readonly Mount[] {
  if (settings.every(({ webhookKey }) => webhookKey === undefined)) return [];
  return [
    providerHints({
      ...options,
      clock: systemClock,
      async take(source, hints) {
        const noted = await Promise.allSettled(
          options
            .units()
            .map((inUnit) => inUnit((em) => expediteChecks(em, source, { hints, nowMs: systemClock.now() }))),
        );
        const failed = noted.find((result) => result.status === 'rejected');
        if (failed !== undefined) throw failed.reason;
      },
    }),
  ];
}
