import { openSimulatedChains, type SimulatedChains } from '../adapters/chain-simulated/simulated-chains.ts';
import { chainsOf } from '../adapters/sandbox-folder.ts';
import type { SandboxConfig } from '../config.ts';
import { assetsOf } from '../domain/chains/known-assets.ts';
import { knownChains } from '../domain/chains/known-chains.ts';
import type { Clock } from '../services.ts';

/** The simulated chains of a sandbox, in its folder where it has one. */
export function simulatedChains(
  { dataFolder, confirmAfterMs }: Pick<SandboxConfig, 'dataFolder' | 'confirmAfterMs'>,
  clock: Clock,
): SimulatedChains {
  const file = dataFolder === undefined ? ':memory:' : chainsOf(dataFolder);
  return openSimulatedChains({ file, clock, confirmAfterMs, knownTokens: namedTokens });
}

/** The tokens that have a name in the contract are there from the start, with their decimals. */
function namedTokens() {
  return [false, true]
    .flatMap((isTestnet) => knownChains({ isTestnet }))
    .flatMap(assetsOf)
    .flatMap(({ chain: { caip2 }, tokenAddress: address, asset, decimals }) =>
      address === null ? [] : [{ caip2, address, symbol: asset.toUpperCase(), decimals }],
    );
}
