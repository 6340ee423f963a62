import { parseArgs } from 'node:util';
import { systemEntropy } from '../../src/adapters/runtime.ts';
import { openSigner } from '../../src/compose/open-signer.ts';
import { startProduction } from '../../src/compose/serve.ts';
import { readServeConfig, readSignerConfig } from '../../src/config/config.ts';
import { productionVault } from '../../src/keys/production-keys.ts';
import type { SignerVault } from '../../src/keys/signer-client.ts';

// `custos serve` from source, with its signer or, for comparison, with the same vault in its own process.

/** A vault in this process in place of a signer. */
async function vaultInside(): Promise<SignerVault> {
  const vault = productionVault(readSignerConfig(), systemEntropy);
  return { vault, checkKeysBy: () => undefined, check: async () => undefined, close: async () => undefined };
}

const { values } = parseArgs({ options: { vault: { type: 'string', default: 'signer' } } });
const config = readServeConfig({});
await startProduction(config, { signer: values.vault === 'inside' ? vaultInside() : openSigner(config) });
