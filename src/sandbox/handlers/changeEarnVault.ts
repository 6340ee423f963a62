import { getVault } from '../../domain/money/earn/find-vault.ts';
import { invalidField, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { earnVaultView } from '../earn-vault-view.ts';

export const run: Handler<'changeEarnVault'> = async ({ path, body }, context) => {
  const { chains } = context;
  const vault = await context.read((em) => getVault(em, path.vault_id));
  const isSimulated = chains.has(vault.caip2) && (await chains.earn.rateOf(vault.caip2, vault.address));
  if (!isSimulated) throw notFound('Vault');
  const { apy_bps: apyBps, paused: isPaused, raw_liquidity: rawLiquidity } = body;
  const most = await chains.earn.changeVault(vault.caip2, vault.address, {
    ...{ apyBps, isPaused },
    rawLiquidity: rawLiquidity === undefined ? undefined : BigInt(rawLiquidity),
  });
  if (most !== undefined) {
    throw invalidField('/raw_liquidity', `expected at most \`${most}\`, which is what the vault has`);
  }
  await context.runDueJobs();
  return earnVaultView(context, vault);
};
