import type { PlanContext } from '../../../operation-context.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import type { AbiValue } from '../../../signing/ethereum/contracts/contract-abi.ts';
import { feeVault, tokenVault } from '../../../signing/ethereum/contracts/vault-calls.ts';
import { requireChain } from '../sending/call-chain.ts';
import type { EarnVault } from './find-vault.ts';

/** The chain of a vault. @throws ApiError not_supported when it is not configured. */
export function requireVaultChain(
  context: Pick<PlanContext, 'chains'>,
  { caip2 }: Pick<EarnVault, 'caip2'>,
): EvmChain {
  return requireChain(context, { caip2, kind: 'evm', pointer: '/vault_id' });
}

type AmountQuery =
  | 'totalAssets'
  | 'convertToAssets'
  | 'maxDeposit'
  | 'maxWithdraw'
  | 'maxRedeem'
  | 'previewDeposit';

/** An amount that a vault answers; undefined when it does not, for example because no vault is there. */
export async function askVault(
  chain: EvmChain,
  { address }: Pick<EarnVault, 'address'>,
  name: AmountQuery,
  ...args: AbiValue[]
): Promise<bigint | undefined> {
  const data = await chain.read({ to: address, data: tokenVault.encodeCall(name, ...args) });
  const [amount] = tokenVault.decodeResult(name, data) ?? [];
  return typeof amount === 'bigint' ? amount : undefined;
}

/** The fees that the app can collect; undefined for a vault that keeps none. */
export async function askFees(chain: EvmChain, { address }: EarnVault): Promise<bigint | undefined> {
  const data = await chain.read({ to: address, data: feeVault.encodeCall('getClaimableFees') });
  const [amount] = feeVault.decodeResult('getClaimableFees', data) ?? [];
  return typeof amount === 'bigint' ? amount : undefined;
}

/** The token that a vault accepts; undefined when no vault is there. */
export async function askAsset(chain: EvmChain, address: string): Promise<string | undefined> {
  const data = await chain.read({ to: address, data: tokenVault.encodeCall('asset'), isConstant: true });
  const [asset] = tokenVault.decodeResult('asset', data) ?? [];
  return typeof asset === 'string' ? asset : undefined;
}
