import type { EarnVault } from '../domain/money/earn/earn-vault.ts';
import type { ControlContext } from './control-plane.ts';
import type { SandboxEarnVault } from './generated/schemas.ts';

/** A vault with what it earns now. */
export async function earnVaultView({ chains }: ControlContext, vault: EarnVault): Promise<SandboxEarnVault> {
  const rate = await chains.earn.rateOf(vault.caip2, vault.address);
  return {
    ...{ id: vault.id, caip2: vault.caip2, address: vault.address, asset_address: vault.assetAddress },
    ...{ provider: vault.provider, name: vault.name },
    ...{ apy_bps: rate?.apyBps ?? 0, fee_bps: rate?.feeBps ?? vault.feeBps },
  };
}
